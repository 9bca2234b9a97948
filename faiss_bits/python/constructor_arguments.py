"""Constructors whose arguments SWIG refuses: errors in the words of their texts."""

import functools
import numbers
import re

from .arrays import LEAST_INT, MOST_INT, float32_number, int_number


def say_what_fits(the_class):
    """Arguments that no constructor takes are an error with those that it takes,
    as its text has them, in place of SWIG's list of C++ functions."""
    original_init, name = the_class.__init__, the_class.__name__
    every_form = _forms(name, original_init.__doc__)

    @functools.wraps(original_init)
    def __init__(self, *args, **kwargs):
        given = [type(arg).__name__ for arg in args]
        given += [f"{key}={type(arg).__name__}" for key, arg in kwargs.items()]
        expected = (
            f"{name}({', '.join(given)}): expected {' or '.join(every_form)}"
        )
        if kwargs:
            raise TypeError(f"{expected}; arguments are taken by place, not by name")
        try:
            original_init(self, *args)
        except TypeError as error:
            if "overloaded function 'new_" not in str(error):
                raise
            for form in every_form:
                _check_room(form, args)
            raise TypeError(expected) from None

    the_class.__init__ = __init__


def _forms(name, doc):
    """The lines of a text on constructors that show how one is called."""
    lines = map(str.strip, (doc or "").splitlines())
    return [line for line in lines if line.startswith(f"{name}(")]


_OBJECTS = ("res", "quantizer", "index", "cpu_index", "config")
_FLOATS = ("metricArg", "alpha")
# Of whole numbers that are no C++ int.
_MOST = {"nlist": 2**64 - 1, "seed": 2**64 - 1}


def _check_room(form, args):
    """Raises for a number that C++ has no room for, where the arguments are those
    of this form of a constructor, which SWIG takes for none then."""
    names = re.findall(r"\w+", re.sub(r"=[^,\])]*", "", form.split("(", 1)[1]))
    if len(args) > len(names) or any(
        isinstance(arg, numbers.Real) == (name in _OBJECTS)
        for name, arg in zip(names, args)
    ):
        return
    for name, arg in zip(names, args):
        if name in _FLOATS:
            float32_number(arg, name)
        elif name in _MOST and isinstance(arg, numbers.Integral):
            int_number(arg, name, 0, _MOST[name])
        elif isinstance(arg, numbers.Integral):
            int_number(arg, name, LEAST_INT, MOST_INT)
