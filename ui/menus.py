"""The menu bar: every action of the window, with its shortcut."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from PySide6.QtGui import QAction, QActionGroup, QKeySequence
from PySide6.QtWidgets import QMainWindow, QMenu

_LOOKS = (("system", "As the system"), ("light", "Light"), ("dark", "Dark"))


@dataclass(frozen=True)
class Commands:
    """What the menu entries do."""

    new: Callable[[], None]
    attach: Callable[[], None]
    search: Callable[[], None]
    rename: Callable[[], None]
    pin: Callable[[], None]
    delete: Callable[[], None]
    undo_delete: Callable[[], None]
    quit: Callable[[], object]
    choose_model: Callable[[], None]
    eject: Callable[[], None]
    stop: Callable[[], None]
    prefix_cache: Callable[[], None]
    settings: Callable[[], None]
    set_look: Callable[[str], None]
    profiles: QMenu
    open_logs: Callable[[], None]
    open_data: Callable[[], None]
    about: Callable[[], None]


@dataclass(frozen=True)
class Menus:
    """The actions that the window switches on and off."""

    undo_delete: QAction
    eject: QAction
    stop: QAction
    left_pane: QAction
    right_pane: QAction
    looks: dict[str, QAction]


def build_menus(window: QMainWindow, commands: Commands) -> Menus:
    """Fill the window's menu bar."""
    bar = window.menuBar()
    chat = bar.addMenu("&Conversation")
    _add(chat, "&New conversation", commands.new, QKeySequence.StandardKey.New)
    _add(chat, "&Attach documents…", commands.attach, QKeySequence.StandardKey.Open)
    chat.addSeparator()
    _add(chat, "&Search titles", commands.search, QKeySequence.StandardKey.Find, QKeySequence("Ctrl+K"))
    _add(chat, "&Rename", commands.rename, QKeySequence("F2"))
    _add(chat, "&Pin or unpin", commands.pin)
    _add(chat, "&Delete", commands.delete)
    undo_delete = _add(chat, "&Undo delete", commands.undo_delete, QKeySequence("Ctrl+Shift+T"))
    chat.addSeparator()
    quit_action = _add(chat, "&Quit", commands.quit, QKeySequence("Ctrl+Q"))
    quit_action.setMenuRole(QAction.MenuRole.QuitRole)
    model = bar.addMenu("&Model")
    _add(model, "&Choose a model…", commands.choose_model, QKeySequence("Ctrl+L"))
    eject = _add(model, "&Eject", commands.eject)
    stop = _add(model, "&Stop", commands.stop, QKeySequence("Esc"))
    model.addSeparator()
    _add(model, "&Prefix cache…", commands.prefix_cache)
    bar.addMenu(commands.profiles)
    view = bar.addMenu("&View")
    left_pane = _toggle(view, "&Conversations", "Ctrl+B")
    right_pane = _toggle(view, "Se&ttings panel", "Ctrl+Shift+B")
    settings = _add(view, "&Go to the settings", commands.settings, QKeySequence("Ctrl+,"))
    settings.setMenuRole(QAction.MenuRole.NoRole)
    view.addSeparator()
    looks = _add_looks(view.addMenu("&Look"), commands.set_look)
    help_menu = bar.addMenu("&Help")
    _add(help_menu, "Open the &log folder", commands.open_logs)
    _add(help_menu, "Open the &data folder", commands.open_data)
    about = _add(help_menu, "&About Octavo", commands.about)
    about.setMenuRole(QAction.MenuRole.AboutRole)
    return Menus(undo_delete, eject, stop, left_pane, right_pane, looks)


def _add(
    menu: QMenu, text: str, run: Callable[[], object], *shortcuts: QKeySequence | QKeySequence.StandardKey
) -> QAction:
    action = menu.addAction(text)
    action.setShortcuts([QKeySequence(shortcut) for shortcut in shortcuts])
    action.triggered.connect(lambda: run())
    return action


def _toggle(menu: QMenu, text: str, shortcut: str) -> QAction:
    action = menu.addAction(text)
    action.setCheckable(True)
    action.setShortcut(QKeySequence(shortcut))
    return action


def _add_looks(menu: QMenu, set_look: Callable[[str], None]) -> dict[str, QAction]:
    group = QActionGroup(menu)
    looks = {}
    for choice, text in _LOOKS:
        action = menu.addAction(text)
        action.setCheckable(True)
        group.addAction(action)
        action.triggered.connect(lambda _checked=False, choice=choice: set_look(choice))
        looks[choice] = action
    return looks
