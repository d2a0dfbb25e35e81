"""The profile of the open conversation: the one place that the window asks for it."""

from __future__ import annotations

import dataclasses
import itertools
from typing import Any

from PySide6.QtCore import QObject, QTimer, Signal

from app.profiles import BUILT_IN, CUSTOM, DEFAULT, MAX_NAME_CHARS, Profile, require_context, usable_name
from app.store.conversations import ConversationStore
from app.store.records import Conversation
from ui.stored_settings import StoredSettings

_SAVE_DELAY_MS = 500


class CurrentProfile(QObject):
    """Holds the profile of the open conversation, and changes it and the user's own profiles.

    A conversation has a profile by its name, and follows it, until one of its settings is changed in the
    conversation: from then on these are its own.

    Attributes:
        value: the profile now.
        conversation_id: whose it is, None before a conversation is open.
        origin: the name of the profile that `value` was changed from, None where it is not changed.

    Signals:
        changed: the `Profile` now, after it or the list of profiles changed or another conversation opened.
    """

    changed = Signal(object)

    def __init__(
        self, store: ConversationStore, settings: StoredSettings, parent: QObject | None = None
    ) -> None:
        super().__init__(parent)
        self._store = store
        self._settings = settings
        self.value = self.default
        self.conversation_id: int | None = None
        self.origin: str | None = None
        self._is_kept = self._is_saved = True
        self._timer = QTimer(self)
        self._timer.setSingleShot(True)
        self._timer.setInterval(_SAVE_DELAY_MS)
        self._timer.timeout.connect(self.save)

    @property
    def own(self) -> tuple[Profile, ...]:
        """The user's own profiles."""
        return self._settings.value.profiles

    @property
    def choices(self) -> tuple[Profile, ...]:
        """All profiles: built-in ones, own ones, and the settings without a name that were used last."""
        return (*BUILT_IN, *self.own, self._settings.value.custom)

    @property
    def default(self) -> Profile:
        """The profile of new conversations: the one that was chosen last."""
        return self._named(self._settings.value.profile) or DEFAULT

    def is_own(self, name: str) -> bool:
        """Return whether a profile of that name can be changed, renamed and deleted."""
        return any(profile.name == name for profile in self.own)

    def open(self, conversation: Conversation) -> None:
        """Take over the profile of a conversation, the default where it has none; what is unsaved is lost."""
        self._timer.stop()
        self.conversation_id = conversation.id
        self.origin = None
        kept = conversation.profile
        self._is_kept, self._is_saved = kept is not None, True
        if kept is None:
            self.value = self.default
        elif kept.name == CUSTOM:
            self.value = kept
        else:
            self.value = self._named(kept.name) or dataclasses.replace(kept, name=CUSTOM)
        self.changed.emit(self.value)

    def choose(self, name: str) -> None:
        """Give the conversation, and those that are begun from now on, a profile of `choices`."""
        chosen = self._named(name)
        if chosen is None:
            return
        self._settings.update(profile=name)
        if name != self.value.name:
            self._take(chosen, None)
            self.save()

    def update(self, **changes: Any) -> None:
        """Change settings of the open conversation by their names in `Profile`.

        Raises:
            OctavoError: the context limit cannot be; nothing has changed then.
        """
        changed = dataclasses.replace(self.value, **changes)
        if changed == self.value:
            return
        require_context(changed.max_context)
        origin = self.origin if self.value.name == CUSTOM else self.value.name
        base = self._named(origin) if origin is not None else None
        if base is not None and dataclasses.replace(changed, name=base.name) == base:
            self._take(base, None)
            return
        custom = dataclasses.replace(changed, name=CUSTOM)
        self._settings.update(custom=custom)
        self._take(custom, origin)

    def keep(self) -> None:
        """Let the open conversation remember its profile, though it was never chosen there."""
        self._is_saved = self._is_saved and self._is_kept
        self.save()

    def save(self) -> None:
        """Write what was changed a moment ago.

        Raises:
            StoreError: it cannot be saved now; the next change or save tries again.
        """
        self._timer.stop()
        if not self._is_saved and self.conversation_id is not None:
            self._store.set_profile(self.conversation_id, self.value)
            self._is_kept = self._is_saved = True

    def save_as(self, text: str) -> None:
        """Make the settings of the conversation a profile with a name of its own, and choose that.

        Raises:
            OctavoError: the name cannot be.
        """
        name = usable_name(text, [profile.name for profile in self.own])
        self._settings.update(profiles=(*self.own, dataclasses.replace(self.value, name=name)))
        self.choose(name)

    def save_changes(self) -> None:
        """Put the settings of the conversation into the own profile that they were changed from."""
        assert self.origin is not None
        self._replace(self.origin, dataclasses.replace(self.value, name=self.origin))
        self.choose(self.origin)

    def copy(self) -> None:
        """Make a copy of the profile of the conversation, as an own one, and choose it."""
        base = self.value.name[: MAX_NAME_CHARS - 12]
        taken = {profile.name.casefold() for profile in self.choices}
        names = itertools.chain([f"{base} copy"], (f"{base} copy {number}" for number in itertools.count(2)))
        self.save_as(next(name for name in names if name.casefold() not in taken))

    def rename(self, name: str, text: str) -> None:
        """Give an own profile another name, in all conversations that have it.

        Raises:
            OctavoError: the name cannot be.
        """
        old = self._named(name)
        assert old is not None
        new = usable_name(text, [profile.name for profile in self.own if profile.name != name])
        if new != name:
            self._replace(name, dataclasses.replace(old, name=new))

    def delete(self, name: str) -> None:
        """Delete an own profile; conversations that have it keep its settings."""
        old = self._named(name)
        assert old is not None
        self._replace(name, dataclasses.replace(old, name=CUSTOM))

    def _named(self, name: str) -> Profile | None:
        return next((profile for profile in self.choices if profile.name == name), None)

    def _replace(self, name: str, new: Profile) -> None:
        """Put `new` in the place of an own profile everywhere; one without a name only in conversations."""
        self.save()
        self._store.replace_profile(name, new)
        is_own = new.name != CUSTOM
        profiles = [new if old.name == name else old for old in self.own if is_own or old.name != name]
        default = self._settings.value.profile
        if default == name:
            default = new.name if is_own else DEFAULT.name
        self._settings.update(profiles=tuple(profiles), profile=default)
        origin = self.origin if self.origin != name else new.name if is_own else None
        self._take(new if self.value.name == name else self.value, origin)

    def _take(self, profile: Profile, origin: str | None) -> None:
        self.value = profile
        self.origin = origin
        self._is_saved = False
        self._timer.start()
        self.changed.emit(profile)
