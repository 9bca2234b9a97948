#pragma once

#include <Python.h>

#include <algorithm>
#include <stdexcept>
#include <string>
#include <typeinfo>

#include <faiss/impl/FaissException.h>

#include "faiss_bits/flat/FusedDistance.h"
#include "kernels/cpu/Range.h"

#ifdef FAISS_BITS_ENABLE_GPU
#include <faiss/impl/AuxIndexStructures.h>

#include "faiss_bits/common/GpuStaging.h"
#include "faiss_bits/flat/GpuIndexBitsFlat.h"
#include "faiss_bits/ivf/OurIvf.h"
#include "faiss_bits/metric_space/GpuIndexBitsMetricSpace.h"
#include "faiss_bits/python/TensorCalls.h"
#include "faiss_bits/range/GpuBitsRange.h"
#endif

/// Range searches of the Python module, whose results lie in arrays that Python
/// makes while the search goes on.
namespace faiss_bits::python {

/// Python's allocate(size): it returns the addresses of arrays of so many
/// distances and ids. Throws with Python's exception set if it raises one.
class ArrayMaker {
   public:
    /// The reference is the caller's, and outlives this.
    explicit ArrayMaker(PyObject* allocate) : allocate_(allocate) {}

    struct Arrays {
        size_t distances = 0;
        size_t ids = 0;
    };

    Arrays make(idx_t size) const {
        const PyGILState_STATE state = PyGILState_Ensure();
        Arrays arrays;
        PyObject* result =
                PyObject_CallFunction(allocate_, "L", (long long)size);
        const bool isRight = result &&
                PyArg_ParseTuple(result, "KK", &arrays.distances, &arrays.ids);
        Py_XDECREF(result);
        PyGILState_Release(state);
        if (!isRight) {
            throw std::runtime_error("no arrays for results");
        }
        return arrays;
    }

   private:
    static_assert(sizeof(size_t) == sizeof(unsigned long long));

    PyObject* allocate_;
};

template <class T>
void rangeFused(
        const cpu::KnnProblem<T>& problem,
        T radius,
        PyObject* allocate,
        size_t lims) {
    const cpu::RangeResult<T> found =
            bfRangeFused(static_cast<const cpu::Problem<T>&>(problem), radius);
    std::copy(
            found.limits.begin(),
            found.limits.end(),
            reinterpret_cast<idx_t*>(lims));
    if (!found.ids.empty()) {
        const ArrayMaker::Arrays arrays =
                ArrayMaker(allocate).make(idx_t(found.ids.size()));
        std::copy(
                found.distances.begin(),
                found.distances.end(),
                reinterpret_cast<T*>(arrays.distances));
        std::copy(
                found.ids.begin(),
                found.ids.end(),
                reinterpret_cast<idx_t*>(arrays.ids));
    }
}

/// bfRangeFused; lims is [numQueries + 1]. k and outputs are not read.
inline void rangeFusedFloat(
        const cpu::KnnProblem<float>& problem,
        float radius,
        PyObject* allocate,
        size_t lims) {
    rangeFused<float>(problem, radius, allocate, lims);
}
inline void rangeFusedDouble(
        const cpu::KnnProblem<double>& problem,
        double radius,
        PyObject* allocate,
        size_t lims) {
    rangeFused<double>(problem, radius, allocate, lims);
}

#ifdef FAISS_BITS_ENABLE_GPU

/// On the device, in arrays that Python makes there, part by part.
class PythonRangeResult : public gpu::GpuRangeResult {
   public:
    explicit PythonRangeResult(PyObject* allocate) : maker_(allocate) {}

    Part allocate(idx_t size) override {
        const ArrayMaker::Arrays arrays = maker_.make(size);
        return {size, at<float>(arrays.distances), at<idx_t>(arrays.ids)};
    }

    void copyLimits(size_t to) const {
        std::copy(lims.begin(), lims.end(), at<idx_t>(to));
    }

   private:
    ArrayMaker maker_;
};

/// range_search() of tensors on the device of a flat index, of one of inverted
/// lists or of one for metric spaces; lims is [n + 1], on the host.
inline void rangeSearchOnStream(
        faiss::gpu::GpuIndex* index,
        long long stream,
        idx_t n,
        size_t x,
        float radius,
        const faiss::SearchParameters* params,
        PyObject* allocate,
        size_t lims) {
    const OnStream scope(
            gpu::detail::resourcesOf(params, index->getResources()),
            index->getDevice(),
            stream);
    PythonRangeResult result(allocate);
    const auto search = [&](const auto& one) {
        one.rangeSearchOnDevice(n, at<const float>(x), radius, result, params);
    };
    using Flat = gpu::GpuIndexBitsFlat;
    using MetricSpace = gpu::GpuIndexBitsMetricSpace;
    if (const auto* flat = dynamic_cast<const Flat*>(index)) {
        search(*flat);
    } else if (const auto* space = dynamic_cast<const MetricSpace*>(index)) {
        search(*space);
    } else if (!gpu::detail::asOurIvf(*index, search)) {
        throw std::runtime_error(
                "index is a " +
                faiss::demangle_cpp_symbol(typeid(*index).name()) +
                ", which has no range search on the device");
    }
    result.copyLimits(lims);
}

/// bfRangeBits of row-major matrices, on the host or on the device; `ours` is a
/// Metric that goes before `metric`, or -1. Without `result` the results are
/// tensors on the device.
inline void rangeOnStream(
        faiss::gpu::GpuResourcesProvider* provider,
        int device,
        long long stream,
        idx_t numQueries,
        idx_t numVectors,
        int d,
        size_t queries,
        size_t vectors,
        bool vectorsRowMajor,
        bool isHalf,
        int metric,
        float metricArg,
        int ours,
        float radius,
        idx_t maxResults,
        faiss::RangeSearchResult* result,
        PyObject* allocate,
        size_t lims) {
    faiss::gpu::GpuDistanceParams args;
    args.metric = faiss::MetricType(metric);
    args.metricArg = metricArg;
    args.dims = d;
    args.vectorType = args.queryType = isHalf
            ? faiss::gpu::DistanceDataType::F16
            : faiss::gpu::DistanceDataType::F32;
    args.vectors = at<const void>(vectors);
    args.vectorsRowMajor = vectorsRowMajor;
    args.numVectors = numVectors;
    args.queries = at<const void>(queries);
    args.numQueries = numQueries;
    const OnStream scope(provider->getResources(), device, stream);
    const Metric chosen = ours < 0
            ? gpu::detail::requireMetric(faiss::MetricType(metric))
            : Metric(ours);
    if (result) {
        gpu::bfRangeBits(provider, args, chosen, radius, result, maxResults);
        return;
    }
    PythonRangeResult onDevice(allocate);
    gpu::bfRangeBitsOnDevice(
            provider, args, chosen, radius, onDevice, maxResults);
    onDevice.copyLimits(lims);
}

#endif

} // namespace faiss_bits::python
