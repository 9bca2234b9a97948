#pragma once

#include <Python.h>

#include <cstdint>
#include <cstring>

#include <faiss/Index.h>

/// Calls of the Python module with NumPy's arrays as they are. FAISS's wrappers
/// make a SWIG pointer of each, which another module than FAISS's knows only by
/// the name of its type: that and the checks in Python took three times as long
/// as the search of one query in a thousand vectors.
namespace faiss_bits::python {

/// What an object shows of its memory, until this ends. Made and ended with the
/// GIL held, read without.
class ArrayBuffer {
   public:
    ArrayBuffer() = default;
    ArrayBuffer(const ArrayBuffer&) = delete;
    ArrayBuffer& operator=(const ArrayBuffer&) = delete;
    ~ArrayBuffer() {
        if (isHeld_) {
            PyBuffer_Release(&view_);
        }
    }

    /// Holds nothing if the object has no adjacent rows to show.
    void take(PyObject* object) {
        isHeld_ =
                PyObject_GetBuffer(
                        object, &view_, PyBUF_C_CONTIGUOUS | PyBUF_FORMAT) == 0;
        if (!isHeld_) {
            PyErr_Clear();
        }
    }

    bool isMatrix() const {
        return isHeld_ && view_.ndim == 2;
    }
    int64_t rows() const {
        return view_.shape[0];
    }
    int64_t columns() const {
        return view_.shape[1];
    }
    bool isMatrixOf(int64_t rows, int64_t columns) const {
        return isMatrix() && view_.shape[0] == rows &&
                view_.shape[1] == columns;
    }
    bool isWritable() const {
        return isHeld_ && !view_.readonly;
    }

    /// The elements, or null unless they are float32 of this machine's byte
    /// order, where it wants them to lie.
    float* floats() const {
        return is("f") ? at<float>() : nullptr;
    }
    /// The same for int64.
    int64_t* integers() const {
        return is("l") || is("q") ? at<int64_t>() : nullptr;
    }

   private:
    bool is(const char* format) const {
        return isHeld_ && view_.format &&
                std::strcmp(view_.format, format) == 0;
    }
    template <class T>
    T* at() const {
        const bool fits = view_.itemsize == Py_ssize_t(sizeof(T)) &&
                reinterpret_cast<uintptr_t>(view_.buf) % alignof(T) == 0;
        return fits ? static_cast<T*>(view_.buf) : nullptr;
    }

    Py_buffer view_;
    bool isHeld_ = false;
};

/// index.search() of arrays that need no conversion. False, and nothing was
/// done, where one does or is not of the right type or shape: Python's checks
/// then say which.
inline bool searchArrays(
        const faiss::Index* index,
        const ArrayBuffer& x,
        long long k,
        const ArrayBuffer& distances,
        const ArrayBuffer& labels,
        const faiss::SearchParameters* params) {
    if (!index || !x.isMatrix() || x.columns() != index->d || k < 1 ||
        !distances.isMatrixOf(x.rows(), k) || !distances.isWritable() ||
        !labels.isMatrixOf(x.rows(), k) || !labels.isWritable()) {
        return false;
    }
    const float* queries = x.floats();
    float* outDistances = distances.floats();
    int64_t* outLabels = labels.integers();
    if (!queries || !outDistances || !outLabels) {
        return false;
    }
    index->search(x.rows(), queries, k, outDistances, outLabels, params);
    return true;
}

} // namespace faiss_bits::python
