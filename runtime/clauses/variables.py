"""The variables of a program while it runs: cells, frames for clause-local ones, and dynamic variables with a bound.

Values are as `kinst.runtime.dlang.program` describes them; a struct or array is the address of a block in scratch
memory. Clauses access the storage directly (a cell's attribute, a frame's list, a dictionary), so that a read takes a
few nanoseconds. What they store is already wrapped to 64 bits; as in DTrace, the type of a scalar variable truncates
nothing.
"""

from collections.abc import Callable
from typing import Final

from kinst.runtime.clauses.scratch import Scratch
from kinst.runtime.dlang.program import Scope, Variable
from kinst.runtime.dlang.types.types import DType, String, bare
from kinst.targets.c_types import Aggregate, Array, size_of

Stored = int | bytes
Key = int | bytes | tuple[int | bytes, ...]
# Sizes of the kernel's own structures, so that `dynvarsize` holds about as many variables as it does there:
# dtrace_dynvar_t with the first key (the variable's number), a dtrace_key_t for each other key, and a hash bucket.
_HEADER: Final = 48
_KEY: Final = 16
_BUCKET: Final = 64
LIMIT: Final = 256 << 20  # bytes of all dynamic variables


class Cell:
    """A global variable."""

    __slots__ = ("value",)

    def __init__(self, value: Stored) -> None:
        self.value = value


def set_cell(cell: Cell, value: Stored) -> Stored:
    """Assign to a global variable, in an expression; the result is `value`."""
    cell.value = value
    return value


class Frames(dict[int, list[Stored]]):
    """Clause-local variables: a list of values for each CPU, which is made when the CPU is first seen. As in the kernel
    (dtvs_t of each CPU) they are neither reset between firings nor between clauses."""

    def __init__(self, scratch: Scratch) -> None:
        super().__init__()
        self._scratch = scratch
        self._types: list[tuple[DType, int]] = []

    def add(self, kind: DType, strsize: int) -> int:
        """Add a variable and return its place in the lists."""
        self._types.append((kind, storage_size(kind, strsize)))
        for frame in self.values():
            frame.append(self._initial(*self._types[-1]))
        return len(self._types) - 1

    def __missing__(self, cpu: int) -> list[Stored]:
        self[cpu] = frame = [self._initial(*of) for of in self._types]
        return frame

    def _initial(self, kind: DType, size: int) -> Stored:
        return self._scratch.keep(size) if is_block(kind) else zero(kind)


class Pool:
    """The limit of dynamic variables. As in the kernel, all chunks are as large as the largest variable needs: one
    variable with a long key or a large struct leaves fewer chunks for all. A size that is too large is reduced."""

    def __init__(self, size: int) -> None:
        """`size` is the option dynvarsize in bytes."""
        self._size = min(size, LIMIT)
        self._chunk = 0
        self.limit = 0
        self.live = 0
        self.drops: dict[int, int] = {}

    def need(self, chunk: int) -> None:
        """Make the chunks at least this large (bytes)."""
        self._chunk = max(self._chunk, -(-chunk // 8) * 8)
        self.limit = self._size // (self._chunk + _BUCKET)

    def take(self, cpu: int) -> bool:
        """Take a chunk for a new variable. False if there is none; that is counted as a drop."""
        if self.live >= self.limit:
            self.drops[cpu] = self.drops.get(cpu, 0) + 1
            return False
        self.live += 1
        return True


class Dynamic:
    """An associative array or a thread-local variable: `cells` by key. `store(value, key, cpu)` returns the value; its
    arguments are in the order in which D evaluates them. Storing 0, or NULL for a string, frees an element."""

    def __init__(self, size: int, pool: Pool, scratch: Scratch) -> None:
        self.cells: dict[Key, Stored] = {}
        self._size, self._pool, self._scratch = size, pool, scratch
        self.store = self._storer()

    def _storer(self) -> Callable[[Stored, Key, int], Stored]:
        cells, pool = self.cells, self._pool

        def store(value: Stored, key: Key, cpu: int) -> Stored:
            # 0 and NULL free the element: programs rely on `self->ts = 0` to give its memory back. An empty string is a
            # value.
            if value or value == b"":
                if key in cells or pool.take(cpu):
                    cells[key] = value
            elif cells.pop(key, None) is not None:
                pool.live -= 1
            return value

        return store

    def forget(self, thread: int, *, is_array: bool) -> None:
        """Free what belongs to a thread. A key is the thread, or begins with it."""
        keys = [key for key in self.cells if isinstance(key, tuple) and key[0] == thread] if is_array else [thread]
        for key in keys:
            if self.cells.pop(key, None) is not None:
                self._pool.live -= 1

    def block(self, key: Key, cpu: int) -> Stored:
        """The address of a struct's or array's bytes, which are allocated if there are none yet; 0 if there is no
        space."""
        found = self.cells.get(key)
        if found is None:
            if not self._pool.take(cpu):
                return 0
            self.cells[key] = found = self._scratch.keep(self._size)
        return found


class Variables:
    """All variables of a session."""

    def __init__(self, strsize: int, dynvarsize: int, scratch: Scratch) -> None:
        """`strsize` and `dynvarsize` are the options, in bytes."""
        self._strsize, self._scratch = strsize, scratch
        self.frames = Frames(scratch)
        self._pool = Pool(dynvarsize)
        self._cells: dict[Variable, Cell] = {}
        self._slots: dict[Variable, int] = {}
        self._dynamic: dict[Variable, Dynamic] = {}

    @property
    def drops(self) -> dict[int, int]:
        """CPU -> the number of stores for which there was no space, since the start of the run."""
        return self._pool.drops

    def cell(self, variable: Variable) -> Cell:
        """The cell of a plain global variable."""
        found = self._cells.get(variable)
        if found is None:
            kind = variable.type
            initial = self._scratch.keep(storage_size(kind, self._strsize)) if is_block(kind) else zero(kind)
            found = self._cells[variable] = Cell(initial)
        return found

    def slot(self, variable: Variable) -> int:
        """The place of a clause-local variable in each of `frames`."""
        if variable not in self._slots:
            self._slots[variable] = self.frames.add(variable.type, self._strsize)
        return self._slots[variable]

    @property
    def has_threads(self) -> bool:
        """Whether there are thread-local variables."""
        return any(variable.scope is Scope.THREAD for variable in self._dynamic)

    def forget(self, thread: int) -> None:
        """Free the variables of a thread that has ended."""
        for variable, dynamic in self._dynamic.items():
            if variable.scope is Scope.THREAD:
                dynamic.forget(thread, is_array=variable.keys is not None)

    def dynamic(self, variable: Variable) -> Dynamic:
        """The storage of an associative array or a thread-local variable."""
        found = self._dynamic.get(variable)
        if found is None:
            size = storage_size(variable.type, self._strsize)
            is_thread = variable.scope is Scope.THREAD
            keys = sum(_key_size(key, self._strsize) for key in variable.keys or ())
            self._pool.need(_HEADER + keys + _KEY * is_thread + size)
            found = self._dynamic[variable] = Dynamic(size, self._pool, self._scratch)
        return found


def zero(kind: DType) -> Stored:
    """The value of a variable before it is assigned."""
    return b"" if isinstance(bare(kind), String) else 0


def is_block(kind: DType) -> bool:
    """Whether a value of the type is the address of bytes of its own: a struct, union or array."""
    return isinstance(bare(kind), Array | Aggregate)


def storage_size(kind: DType, strsize: int) -> int:
    """The bytes that a value takes. Scalars take a word, as in the kernel."""
    stripped = bare(kind)
    if isinstance(stripped, String):
        return strsize
    if isinstance(stripped, Array | Aggregate):
        return size_of(stripped) or 0
    return 8


def _key_size(kind: DType, strsize: int) -> int:
    """The bytes of a key: a word is part of the key's structure, anything larger comes after it."""
    return _KEY + (storage_size(kind, strsize) if is_block(kind) or isinstance(bare(kind), String) else 0)
