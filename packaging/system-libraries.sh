#!/usr/bin/env bash
# Sees to what Octavo needs of the operating system.
#
#   packaging/system-libraries.sh SET...     SET is python, window, display or bundle
#
# Quiet when nothing is missing. What is missing on Debian and its children is installed when root, else named with
# the line that installs it. On other Linux systems it is only named: package names differ. A Mac has all of it.
set -euo pipefail
cd "$(dirname "$0")"
[ "$(uname -s)" = Linux ] || exit 0

# set, what shows that it is there, Debian's package
NEEDS='
python   python                                                          python3-venv
window   libGL.so.1                                                      libgl1
window   libEGL.so.1                                                     libegl1
window   libglib-2.0.so.0                                                libglib2.0-0
window   libdbus-1.so.3                                                  libdbus-1-3
window   libfontconfig.so.1                                              libfontconfig1
window   libxkbcommon.so.0                                               libxkbcommon0
window   libxkbcommon-x11.so.0                                           libxkbcommon-x11-0
window   libxcb-cursor.so.0                                              libxcb-cursor0
window   libxcb-icccm.so.4                                               libxcb-icccm4
window   libxcb-keysyms.so.1                                             libxcb-keysyms1
window   libxcb-shape.so.0                                               libxcb-shape0
window   libwayland-cursor.so.0                                          libwayland-cursor0
window   libwayland-egl.so.1                                             libwayland-egl1
display  Xvfb                                                            xvfb
display  openbox                                                         openbox
display  xdotool                                                         xdotool
display  /usr/share/fonts/opentype/noto/NotoSansCJK-Regular.ttc          fonts-noto-cjk
display  /usr/share/fonts/truetype/noto/NotoColorEmoji.ttf               fonts-noto-color-emoji
bundle   objdump                                                         binutils
bundle   shared-python                                                   libpython3-dev
'

libraries=$(PATH=$PATH:/usr/sbin:/sbin ldconfig -p 2>/dev/null || true)

# PyInstaller puts Python's own shared library into a bundle; Debian keeps it in a package of its own.
SHARED_PYTHON='
import ctypes, pathlib, sysconfig
name = sysconfig.get_config_var("INSTSONAME")
pathlib.Path(sysconfig.get_config_var("LIBDIR"), name).exists() or ctypes.CDLL(name)
'

present() {
    case $1 in
        python) ./find-python.sh >/dev/null ;;
        shared-python) "$(./find-python.sh)" -c "$SHARED_PYTHON" 2>/dev/null ;;
        lib*) [ -z "$libraries" ] || [[ $libraries == *"$1 "* ]] ;; # a system without ldconfig cannot be asked
        *) [ -e "$1" ] || command -v "$1" >/dev/null ;;
    esac
}

missing=()
packages=()
while read -r set what package; do
    if [[ " $* " == *" $set "* ]] && ! present "$what"; then
        missing+=("$what")
        packages+=("$package")
    fi
done < <(grep . <<<"$NEEDS")

[ ${#missing[@]} -gt 0 ] || exit 0
if ! command -v apt-get >/dev/null; then
    echo "Octavo needs what this system seems to lack; please install the packages that hold: ${missing[*]}" >&2
elif [ "$(id -u)" = 0 ]; then
    echo "Installing ${packages[*]}" >&2
    export DEBIAN_FRONTEND=noninteractive
    apt-get update -qq
    apt-get install -y -qq --no-install-recommends "${packages[@]}" >/dev/null
else
    echo "Octavo needs system packages that are missing; install them and run make again:" >&2
    echo "    sudo apt-get install --no-install-recommends ${packages[*]}" >&2
    exit 1
fi
