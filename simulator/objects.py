"""A store of objects as S3 is one, with its failures: requests that are lost, or carried out and not answered."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar, TypeVar

from fsspec import AbstractFileSystem, register_implementation

from simulator.world import Killed, World

PROTOCOL = "simulated"
T = TypeVar("T")


class ObjectStore(AbstractFileSystem):  # type: ignore[misc]
    """The objects of a world. `before` is called with each change; `fails` chooses which requests fail."""

    protocol = PROTOCOL
    cachable = False
    world: ClassVar[World]
    objects: ClassVar[dict[str, bytes]] = {}
    before: ClassVar[Callable[[str, str], None]]
    failing: ClassVar[float] = 0.0

    @classmethod
    def empty(cls, world: World, before: Callable[[str, str], None]) -> None:
        """Begin with no objects, in a world."""
        cls.world, cls.before, cls.objects, cls.failing = world, before, {}, 0.0

    def _request(self, what: str, path: str, effect: Callable[[], T]) -> T:
        world, random = self.world, self.world.random
        current = world.current
        assert current
        if not current.process.alive:
            raise Killed
        type(self).before(what, path)
        if not current.process.alive:  # it died with the request on its way
            if what in {"put", "create", "delete"} and random.random() < 0.5:
                effect()
            raise Killed
        fails = random.random() < self.failing and random.choice((1, 2, 3))
        if fails == 1:
            world.sleep(random.uniform(0, 3))
            raise ConnectionError("connection refused")
        result = effect()
        world.sleep(world.delay())
        if fails:
            world.sleep(random.uniform(0, 6))
            raise TimeoutError("no answer")
        return result

    def cat_file(self, path: str, start: int | None = None, end: int | None = None, **_: Any) -> bytes:
        key = self._strip_protocol(path)

        def get() -> bytes:
            if key not in self.objects:
                raise FileNotFoundError(path)
            return self.objects[key][start:end]

        return self._request("get", key, get)

    def pipe_file(self, path: str, value: bytes, mode: str = "overwrite", **_: Any) -> None:
        key = self._strip_protocol(path)

        def put() -> None:
            if mode == "create" and key in self.objects:
                raise FileExistsError(path)
            self.objects[key] = bytes(value)

        self._request("create" if mode == "create" else "put", key, put)

    def exists(self, path: str, **_: Any) -> bool:
        key = self._strip_protocol(path)
        return self._request(
            "get", key, lambda: key in self.objects or any(one.startswith(f"{key}/") for one in self.objects)
        )

    def ls(self, path: str, detail: bool = True, **_: Any) -> list[Any]:
        key = self._strip_protocol(path).rstrip("/")

        def names() -> list[str]:
            below = {one[len(key) + 1 :].split("/")[0] for one in self.objects if one.startswith(f"{key}/")}
            if not below:
                raise FileNotFoundError(path)
            return sorted(f"{key}/{name}" for name in below)

        return self._request("get", key, names)

    def find(self, path: str, detail: bool = False, **_: Any) -> Any:
        key = self._strip_protocol(path)
        return self._request(
            "get", key, lambda: {o: {"size": len(d)} for o, d in self.objects.items() if o.startswith(f"{key}/")}
        )

    def rm_file(self, path: str) -> None:
        key = self._strip_protocol(path)
        self._request("delete", key, lambda: self.objects.pop(key, None))

    def rm(self, path: Any, **_: Any) -> None:
        for one in [path] if isinstance(path, str) else path:
            self.rm_file(one)


register_implementation(PROTOCOL, ObjectStore, clobber=True)
