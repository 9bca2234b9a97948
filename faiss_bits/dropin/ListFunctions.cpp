/// FAISS's scans of inverted lists of vectors and scalar codes, defined on our
/// kernels.

#include "faiss_bits/dropin/ListCall.h"
#include "faiss_bits/dropin/Replacement.h"
#include "faiss_bits/dropin/ScalarCodes.h"

namespace faiss_bits::dropin {

namespace {

using faiss::MetricType;
using faiss::gpu::Cube;
using faiss::gpu::DeviceVector;
using faiss::gpu::FlatScanFunction;
using faiss::gpu::GpuResources;
using faiss::gpu::GpuScalarQuantizer;
using faiss::gpu::IndicesOptions;
using faiss::gpu::InterleavedScanFunction;
using faiss::gpu::Matrix;

/// All that the two functions have in common.
template <class Index>
struct VectorCall {
    ListCall<Index> lists;
    bool useResidual;
    Cube<float, Index>& residualBase;
    GpuScalarQuantizer* scalarQ;
};

/// Lists of residuals: adds what FAISS tells of their centroids.
template <class Index>
void readResiduals(const VectorCall<Index>& c, ListRequest& r) {
    const Cube<float, Index>& base = c.residualBase;
    if (base.size_[0] != r.numQueries || base.size_[1] != r.nprobe ||
        base.size_[2] != r.lists.d) {
        r.mismatch = "the bases of residuals are " +
                shapeText(base.size_[0], base.size_[1]) + " x " +
                std::to_string(base.size_[2]) + ", expected " +
                shapeText(r.numQueries, r.nprobe) + " x " +
                std::to_string(r.lists.d);
    } else if (!isDense(base.size_, base.stride_)) {
        r.left = "scans of tensors with gaps between their rows";
    }
    r.residualBases = base.data_;
}

template <class Index>
ListRequest makeVectorRequest(const VectorCall<Index>& c, ListLayout layout) {
    ListRequest r = makeRequest(c.lists, layout);
    if (!r.left.empty() || !r.mismatch.empty()) {
        return r;
    }
    if (c.scalarQ) {
        const ScalarReading reading = readScalarQuantizer<Index>(
                c.scalarQ, c.lists.resources, r.lists);
        r.left = reading.left;
        r.mismatch = reading.mismatch;
        if (c.useResidual && r.left.empty() && r.mismatch.empty()) {
            readResiduals(c, r);
        }
    } else if (c.useResidual) {
        r.left = "scans of lists of residuals of vectors";
    }
    return r;
}

/// Searches with our kernels, or as FAISS does.
template <class F, class Index, class... Arguments>
void run(
        Replacement& replacement,
        ListLayout layout,
        const VectorCall<Index>& c,
        Arguments&&... arguments) {
    const ListRequest request = makeVectorRequest(c, layout);
    const auto work = [&](const Original& original) {
        return request.left.empty()
                ? searchLists(request, streamOf(original, c.lists.resources))
                : request.left;
    };
    replacement.call<F>(
            refusalOf(request), work, std::forward<Arguments>(arguments)...);
}

template <class Index>
void runInterleaved(Replacement& replacement, const VectorCall<Index>& c) {
    run<InterleavedScanFunction<Index>>(
            replacement,
            ListLayout::Interleaved,
            c,
            c.lists.queries,
            c.lists.listIds,
            c.lists.listData,
            c.lists.listIndices,
            c.lists.indicesOptions,
            c.lists.listLengths,
            c.lists.k,
            c.lists.metric,
            c.useResidual,
            c.residualBase,
            c.scalarQ,
            c.lists.outDistances,
            c.lists.outIndices,
            c.lists.resources);
}

template <class Index>
void runRows(
        Replacement& replacement,
        const VectorCall<Index>& c,
        Index maxListLength) {
    run<FlatScanFunction<Index>>(
            replacement,
            ListLayout::Rows,
            c,
            c.lists.queries,
            c.lists.listIds,
            c.lists.listData,
            c.lists.listIndices,
            c.lists.indicesOptions,
            c.lists.listLengths,
            maxListLength,
            c.lists.k,
            c.lists.metric,
            c.useResidual,
            c.residualBase,
            c.scalarQ,
            c.lists.outDistances,
            c.lists.outIndices,
            c.lists.resources);
}

} // namespace

} // namespace faiss_bits::dropin

// ---- the functions themselves ----------------------------------------------

namespace faiss::gpu {

using namespace faiss_bits::dropin;

void runIVFInterleavedScan(
        Matrix<float, int>& queries,
        Matrix<int64_t, int>& listIds,
        DeviceVector<void*>& listData,
        DeviceVector<void*>& listIndices,
        IndicesOptions indicesOptions,
        DeviceVector<int>& listLengths,
        int k,
        MetricType metric,
        bool useResidual,
        Cube<float, int>& residualBase,
        GpuScalarQuantizer* scalarQ,
        Matrix<float, int>& outDistances,
        Matrix<int64_t, int>& outIndices,
        GpuResources* resources) {
    static auto& own = *new Replacement(describeInterleavedScan<int>());
    runInterleaved<int>(
            own,
            {{queries,
              listIds,
              listData,
              listIndices,
              indicesOptions,
              listLengths,
              k,
              metric,
              outDistances,
              outIndices,
              resources},
             useResidual,
             residualBase,
             scalarQ});
}

void runIVFInterleavedScan(
        Matrix<float, int64_t>& queries,
        Matrix<int64_t, int64_t>& listIds,
        DeviceVector<void*>& listData,
        DeviceVector<void*>& listIndices,
        IndicesOptions indicesOptions,
        DeviceVector<int64_t>& listLengths,
        int k,
        MetricType metric,
        bool useResidual,
        Cube<float, int64_t>& residualBase,
        GpuScalarQuantizer* scalarQ,
        Matrix<float, int64_t>& outDistances,
        Matrix<int64_t, int64_t>& outIndices,
        GpuResources* resources) {
    static auto& own = *new Replacement(describeInterleavedScan<int64_t>());
    runInterleaved<int64_t>(
            own,
            {{queries,
              listIds,
              listData,
              listIndices,
              indicesOptions,
              listLengths,
              k,
              metric,
              outDistances,
              outIndices,
              resources},
             useResidual,
             residualBase,
             scalarQ});
}

void runIVFFlatScan(
        Matrix<float, int>& queries,
        Matrix<int64_t, int>& listIds,
        DeviceVector<void*>& listData,
        DeviceVector<void*>& listIndices,
        IndicesOptions indicesOptions,
        DeviceVector<int>& listLengths,
        int maxListLength,
        int k,
        MetricType metric,
        bool useResidual,
        Cube<float, int>& residualBase,
        GpuScalarQuantizer* scalarQ,
        Matrix<float, int>& outDistances,
        Matrix<int64_t, int>& outIndices,
        GpuResources* resources) {
    static auto& own = *new Replacement(describeFlatScan<int>());
    runRows<int>(
            own,
            {{queries,
              listIds,
              listData,
              listIndices,
              indicesOptions,
              listLengths,
              k,
              metric,
              outDistances,
              outIndices,
              resources},
             useResidual,
             residualBase,
             scalarQ},
            maxListLength);
}

void runIVFFlatScan(
        Matrix<float, int64_t>& queries,
        Matrix<int64_t, int64_t>& listIds,
        DeviceVector<void*>& listData,
        DeviceVector<void*>& listIndices,
        IndicesOptions indicesOptions,
        DeviceVector<int64_t>& listLengths,
        int64_t maxListLength,
        int k,
        MetricType metric,
        bool useResidual,
        Cube<float, int64_t>& residualBase,
        GpuScalarQuantizer* scalarQ,
        Matrix<float, int64_t>& outDistances,
        Matrix<int64_t, int64_t>& outIndices,
        GpuResources* resources) {
    static auto& own = *new Replacement(describeFlatScan<int64_t>());
    runRows<int64_t>(
            own,
            {{queries,
              listIds,
              listData,
              listIndices,
              indicesOptions,
              listLengths,
              k,
              metric,
              outDistances,
              outIndices,
              resources},
             useResidual,
             residualBase,
             scalarQ},
            maxListLength);
}

} // namespace faiss::gpu
