/// FAISS's scans of inverted lists of vectors and scalar codes, defined on our
/// kernels.

#include "faiss_bits/dropin/ListCall.h"
#include "faiss_bits/dropin/Replacement.h"
#include "faiss_bits/dropin/ScalarCodes.h"

namespace faiss_bits::dropin {

namespace {

/// Of FAISS's tensors: this file is compiled for each (CMakeLists.txt).
using Index = FAISS_BITS_DROPIN_INDEX;

using faiss::gpu::Cube;
using faiss::gpu::GpuScalarQuantizer;

/// All that the two functions have in common.
struct VectorCall {
    ListCall<Index> lists;
    bool useResidual;
    Cube<float, Index>& residualBase;
    GpuScalarQuantizer* scalarQ;
};

/// Lists of residuals: adds what FAISS tells of their centroids.
void readResiduals(const VectorCall& c, ListRequest& r) {
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

ListRequest makeVectorRequest(const VectorCall& c, ListLayout layout) {
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
template <class F, class... Arguments>
void run(
        Replacement& replacement,
        ListLayout layout,
        const VectorCall& c,
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

} // namespace

} // namespace faiss_bits::dropin

// ---- the functions themselves ----------------------------------------------

namespace faiss::gpu {

using namespace faiss_bits::dropin;

void runIVFInterleavedScan(
        Matrix<float, Index>& queries,
        Matrix<int64_t, Index>& listIds,
        DeviceVector<void*>& listData,
        DeviceVector<void*>& listIndices,
        IndicesOptions indicesOptions,
        DeviceVector<Index>& listLengths,
        int k,
        MetricType metric,
        bool useResidual,
        Cube<float, Index>& residualBase,
        GpuScalarQuantizer* scalarQ,
        Matrix<float, Index>& outDistances,
        Matrix<int64_t, Index>& outIndices,
        GpuResources* resources) {
    static auto& own = *new Replacement(describeInterleavedScan<Index>());
    run<InterleavedScanFunction<Index>>(
            own,
            faiss_bits::ListLayout::Interleaved,
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
            queries,
            listIds,
            listData,
            listIndices,
            indicesOptions,
            listLengths,
            k,
            metric,
            useResidual,
            residualBase,
            scalarQ,
            outDistances,
            outIndices,
            resources);
}

void runIVFFlatScan(
        Matrix<float, Index>& queries,
        Matrix<int64_t, Index>& listIds,
        DeviceVector<void*>& listData,
        DeviceVector<void*>& listIndices,
        IndicesOptions indicesOptions,
        DeviceVector<Index>& listLengths,
        Index maxListLength,
        int k,
        MetricType metric,
        bool useResidual,
        Cube<float, Index>& residualBase,
        GpuScalarQuantizer* scalarQ,
        Matrix<float, Index>& outDistances,
        Matrix<int64_t, Index>& outIndices,
        GpuResources* resources) {
    static auto& own = *new Replacement(describeFlatScan<Index>());
    run<FlatScanFunction<Index>>(
            own,
            faiss_bits::ListLayout::Rows,
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
            queries,
            listIds,
            listData,
            listIndices,
            indicesOptions,
            listLengths,
            maxListLength,
            k,
            metric,
            useResidual,
            residualBase,
            scalarQ,
            outDistances,
            outIndices,
            resources);
}

} // namespace faiss::gpu
