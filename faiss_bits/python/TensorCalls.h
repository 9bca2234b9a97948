#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <utility>

#include <cuda_runtime_api.h>
#include <faiss/gpu/GpuDistance.h>
#include <faiss/gpu/GpuIndex.h>
#include <faiss/gpu/GpuResources.h>
#include <faiss/gpu/utils/DeviceUtils.h>

#include "faiss_bits/common/CallStream.h"
#include "faiss_bits/flat/GpuBitsDistance.h"
#include "faiss_bits/flat/GpuIndexBitsFlat.h"
#include "faiss_bits/flat/SearchParametersBitsFlat.h"
#include "faiss_bits/select/GpuBitsSelect.h"

/// Calls of the Python module with arrays by their addresses, as NumPy and
/// torch know them, and with the stream they are ordered on. One call of Python
/// does what would take a dozen.
namespace faiss_bits::python {

/// Stream of a call that goes where the resources say.
constexpr long long kResourcesStream = -1;

/// Within its scope the device is the current one, and calls on the resources
/// are ordered on a stream of the caller's (CallStream.h).
class OnStream {
   public:
    /// device -1: the current one stays; stream as kResourcesStream says. With
    /// another one arraysAreOnDevice may be true, as CallStream says.
    OnStream(
            std::shared_ptr<faiss::gpu::GpuResources> resources,
            int device,
            long long stream,
            bool arraysAreOnDevice = false)
            : device_(device < 0 ? faiss::gpu::getCurrentDevice() : device),
              scope_(device_) {
        if (stream != kResourcesStream) {
            call_.emplace(
                    std::move(resources),
                    device_,
                    reinterpret_cast<cudaStream_t>(stream),
                    arraysAreOnDevice);
        }
    }

   private:
    int device_;
    faiss::gpu::DeviceScope scope_;
    std::optional<gpu::detail::CallStream> call_;
};

template <class T>
T* at(size_t address) {
    return reinterpret_cast<T*>(address);
}

/// index.search() of tensors on a device, of vectors of d components. False,
/// and nothing is done, where it is not the index's device, or d not its d.
inline bool searchOnStream(
        faiss::gpu::GpuIndex* index,
        int device,
        long long stream,
        idx_t n,
        idx_t d,
        size_t x,
        idx_t k,
        size_t distances,
        size_t labels,
        const faiss::SearchParameters* params) {
    if (device != index->getDevice() || d != index->d) {
        return false;
    }
    // Inverted lists may have a quantizer that searches arrays on the host.
    const bool isFlat = dynamic_cast<gpu::GpuIndexBitsFlat*>(index);
    const OnStream scope(
            gpu::detail::resourcesOf(params, index->getResources()),
            device,
            stream,
            isFlat);
    index->search(
            n,
            at<const float>(x),
            k,
            at<float>(distances),
            at<idx_t>(labels),
            params);
    return true;
}

/// bfKnnBits of matrices, which lie on the device where a stream is given;
/// `ours` is a Metric that goes before `metric`, or -1.
inline void knnOnStream(
        faiss::gpu::GpuResourcesProvider* provider,
        int device,
        long long stream,
        idx_t numQueries,
        idx_t numVectors,
        int d,
        int k,
        size_t queries,
        bool queriesRowMajor,
        size_t vectors,
        bool vectorsRowMajor,
        bool isHalf,
        size_t vectorNorms,
        size_t distances,
        size_t ids,
        bool idsAreInt64,
        int metric,
        float metricArg,
        int ours,
        int mode) {
    faiss::gpu::GpuDistanceParams args;
    args.metric = faiss::MetricType(metric);
    args.metricArg = metricArg;
    args.k = k;
    args.dims = d;
    args.vectorType = args.queryType = isHalf
            ? faiss::gpu::DistanceDataType::F16
            : faiss::gpu::DistanceDataType::F32;
    args.vectors = at<const void>(vectors);
    args.vectorsRowMajor = vectorsRowMajor;
    args.numVectors = numVectors;
    args.vectorNorms = at<const float>(vectorNorms);
    args.queries = at<const void>(queries);
    args.queriesRowMajor = queriesRowMajor;
    args.numQueries = numQueries;
    args.outDistances = at<float>(distances);
    args.outIndicesType = idsAreInt64 ? faiss::gpu::IndicesDataType::I64
                                      : faiss::gpu::IndicesDataType::I32;
    args.outIndices = at<void>(ids);

    const OnStream scope(provider->getResources(), device, stream, true);
    if (ours < 0) {
        gpu::bfKnnBits(provider, args, SearchMode(mode));
    } else {
        gpu::bfKnnBits(provider, args, Metric(ours), SearchMode(mode));
    }
}

/// selectK of a matrix, which lies on the device where a stream is given, with
/// the fields of GpuSelectParams.
inline void selectOnStream(
        faiss::gpu::GpuResourcesProvider* provider,
        int device,
        long long stream,
        idx_t rows,
        idx_t cols,
        int k,
        bool largest,
        bool sorted,
        int algorithm,
        int keyType,
        size_t keys,
        idx_t rowStride,
        int idType,
        size_t ids,
        idx_t idStride,
        size_t outKeys,
        size_t outIds) {
    gpu::GpuSelectParams params;
    params.rows = rows;
    params.cols = cols;
    params.k = k;
    params.largest = largest;
    params.sorted = sorted;
    params.algorithm = SelectAlgorithm(algorithm);
    params.keyType = DataType(keyType);
    params.keys = at<const void>(keys);
    params.rowStride = rowStride;
    params.idType = IdType(idType);
    params.ids = at<const void>(ids);
    params.idStride = idStride;
    params.outKeys = at<void>(outKeys);
    params.outIds = at<void>(outIds);

    const OnStream scope(provider->getResources(), device, stream, true);
    gpu::selectK(provider, params);
}

} // namespace faiss_bits::python
