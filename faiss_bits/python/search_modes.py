"""Search modes by name: of the index classes, and of calls."""

from .compiled import swigfaiss_bits

_MODES = {
    "certified": swigfaiss_bits.SearchMode_Certified,
    "plain": swigfaiss_bits.SearchMode_Plain,
    "fast": swigfaiss_bits.SearchMode_Fast,
}


def mode_of(name):
    """The number of a search mode; an exception that names what is none."""
    if not isinstance(name, str):
        raise TypeError(
            f"search_mode is a {type(name).__name__}, expected a name"
        )
    if name not in _MODES:
        raise ValueError(
            f"search_mode = {name!r} is none of " + ", ".join(map(repr, _MODES))
        )
    return _MODES[name]


def by_name(number):
    """An index's search_mode by name; `number` is what SWIG made."""

    def get_mode(self):
        value = number.fget(self)
        return next(name for name, of in _MODES.items() if of == value)

    def set_mode(self, name):
        number.fset(self, mode_of(name))

    return property(
        get_mode,
        set_mode,
        doc="""What searches promise, by name.

        "certified": canonical distances in every place, the same bits on every
        machine. "plain": those of float32 arithmetic, as FAISS. "fast": those
        of products of 16 bits on tensor cores, near but not exact, where a GPU
        index has many queries by L2 or inner product; as "certified"
        elsewhere.""",
    )
