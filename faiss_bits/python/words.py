"""EditDistanceIndex: words that are near to words by their letters."""

import numpy as np

from .arrays import int64_number, neighbours, pointer, whole_number
from .compiled import swigfaiss_bits
from .ranges import tensors_of


class EditDistanceIndex:
    """Exact search of words by edit distance (Levenshtein): the fewest letters
    that have to be inserted, deleted or replaced. On a GPU or the CPU, with the
    same answers.

    A letter is a code point: "é" is one letter, and "e" with an accent behind it
    two (unicodedata.normalize makes them one). Equal words are words of their
    own, and an empty word is a word.

    Parameters
    ----------
    words : sequence of str or bytes
        The words, of any length; word i has the id i. bytes are UTF-8
    device : str, optional
        "auto" (default): the current GPU if there is one, else the CPU. "gpu":
        there, or RuntimeError. "cpu"

    Attributes
    ----------
    words : list of str or bytes
        Those that were given

    Notes
    -----
    Methods are "auto", "trie", "brute_force", and those of Barrientos et al.
    2012, "list_of_clusters" and "sss", whose indexes are made by the first
    search that asks for them. On a GPU queries and words have up to 4,095
    letters, and the trie takes queries up to 63 letters and distances up to 4:
    with device="auto" other searches run on the CPU, with "gpu" they are a
    RuntimeError. "auto" is the trie where the GPU has it for the query, else
    brute force. Any number of threads may search at a time.
    """

    def __init__(self, words, device="auto"):
        if not isinstance(device, str):
            raise TypeError(f"device is a {type(device).__name__}, expected str")
        self.words = _list_of(words, "words")
        text, offsets = _packed(self.words, "words")
        self._index = swigfaiss_bits.EditDistanceIndex(
            len(self.words), pointer(text), pointer(offsets), device
        )

    @property
    def ntotal(self):
        """Number of words."""
        return self._index.ntotal()

    def __len__(self):
        return self._index.ntotal()

    @property
    def on_gpu(self):
        """True if searches go to a GPU."""
        return self._index.onGpu()

    def __repr__(self):
        place = "GPU" if self.on_gpu else "CPU"
        return f"<EditDistanceIndex of {self.ntotal} words on the {place}>"

    def range_search(self, queries, max_distance, method="auto", on_device=False):
        """Finds all words within a distance of each query.

        Parameters
        ----------
        queries : sequence of str or bytes
            Words of any length
        max_distance : int
            0 or more; a word at this very distance is a result (FAISS's range
            searches leave it out)
        method : str, optional
            How; never changes the result
        on_device : bool, optional
            True: results are torch tensors on the index's GPU, where torch has to
            be installed (other libraries take them by DLPack or
            __cuda_array_interface__). RuntimeError if the index is on the CPU.
            False (default): numpy arrays

        Returns
        -------
        lims : array_like
            Where the results of each query begin, shape (len(queries) + 1,),
            int64: those of query i are lims[i] to lims[i + 1] - 1
        D : array_like
            Distances, shape (lims[-1],), int32
        I : array_like
            Ids, shape (lims[-1],), int64, ascending for each query

        Raises
        ------
        RuntimeError
            A word is no UTF-8 text, or method or device cannot take the search
        ValueError, TypeError
            An argument is wrong

        Notes
        -----
        The call waits for the GPU, also with results there.
        """
        queries = _list_of(queries, "queries")
        most = whole_number(max_distance, "max_distance", 0)
        text, offsets = _packed(queries, "queries")
        call = (
            self._index,
            len(queries),
            pointer(text),
            pointer(offsets),
            min(most, _MOST),
            _name(method),
        )
        if on_device:
            return self._range_on_device(call, len(queries))
        found = swigfaiss_bits.rangeOfWords(*call)
        total = swigfaiss_bits.sizeOfRange(found)
        lims = np.empty(len(queries) + 1, np.int64)
        D, I = np.empty(total, np.int32), np.empty(total, np.int64)
        swigfaiss_bits.copyRange(found, pointer(lims), pointer(D), pointer(I))
        return lims, D, I

    def _range_on_device(self, call, n):
        if not self.on_gpu:
            raise RuntimeError("on_device = True, but the index is on the CPU")
        import torch

        return tensors_of(
            lambda allocate, lims: swigfaiss_bits.rangeOfWordsOnDevice(
                *call, allocate, lims
            ),
            n,
            torch.device("cuda", self._index.getDevice()),
            dtype="int32",
            waits=True,
        )

    def search(self, queries, k, method="auto"):
        """Finds the k words that are nearest to each query.

        Parameters
        ----------
        queries : sequence of str or bytes
            Words of any length
        k : int
            Number of words, 1 or more
        method : str, optional
            How; never changes the result

        Returns
        -------
        D : numpy.ndarray
            Distances, shape (len(queries), k), int32, smallest first
        I : numpy.ndarray
            Ids, int64; of equal distances the lower id first. Where there are
            fewer than k words: -1, with the distance 2^31 - 1

        Raises
        ------
        RuntimeError
            A word is no UTF-8 text, or method or device cannot take the search
        ValueError, TypeError
            An argument is wrong
        """
        queries = _list_of(queries, "queries")
        k = neighbours(k)
        text, offsets = _packed(queries, "queries")
        D = np.empty((len(queries), k), np.int32)
        I = np.empty((len(queries), k), np.int64)
        self._index.search(
            len(queries),
            pointer(text),
            pointer(offsets),
            k,
            pointer(D),
            pointer(I),
            _name(method),
        )
        return D, I

    def plan(self, query_length, max_distance, method="auto"):
        """What range_search() would do with queries of so many letters, as a
        line of text; nothing runs."""
        return self._index.plan(
            1,
            int64_number(query_length, "query_length", 0),
            min(whole_number(max_distance, "max_distance", 0), _MOST),
            _name(method),
        )


_MOST = 2**31 - 1  # no distance is more


def _name(method):
    if not isinstance(method, str):
        raise TypeError(f"method is a {type(method).__name__}, expected str")
    return method


def _list_of(words, name):
    if isinstance(words, (str, bytes)):
        raise TypeError(
            f"{name} is one {type(words).__name__}, expected a list of words"
        )
    try:
        return list(words)
    except TypeError:
        raise TypeError(
            f"{name} is a {type(words).__name__}, expected a list of words"
        ) from None


def _packed(words, name):
    """The words in UTF-8 one behind the other, and where each begins. Bytes are
    looked at by the library."""
    try:
        encoded = [w if type(w) is bytes else w.encode() for w in words]
    except (AttributeError, UnicodeEncodeError):
        encoded = [_encoded(w, f"{name}[{i}]") for i, w in enumerate(words)]
    offsets = np.zeros(len(encoded) + 1, np.int64)
    np.cumsum(np.fromiter(map(len, encoded), np.int64, len(encoded)), out=offsets[1:])
    # One byte more: an array of none has no address.
    text = np.frombuffer(b"".join([*encoded, b"\0"]), np.uint8)
    return text, offsets


def _encoded(word, name):
    if isinstance(word, bytes):
        return bytes(word)
    if not isinstance(word, str):
        raise TypeError(f"{name} is a {type(word).__name__}, expected str or bytes")
    try:
        return word.encode()
    except UnicodeEncodeError as error:
        raise ValueError(
            f"{name} is not Unicode text: letter {error.start} is "
            f"U+{ord(word[error.start]):04X}, half of a surrogate pair"
        ) from None
