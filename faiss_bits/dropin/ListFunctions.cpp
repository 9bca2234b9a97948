/// FAISS's scans of inverted lists, defined on our kernels.

#include <map>
#include <mutex>

#include "faiss_bits/dropin/Functions.h"
#include "faiss_bits/dropin/ListSearch.h"
#include "faiss_bits/dropin/Replacement.h"
#include "kernels/common/Error.h"

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

/// The stream of FAISS's index, from FAISS's own code: how its resources are
/// laid out differs between versions.
cudaStream_t streamOf(const Original& original, GpuResources* resources) {
    using Function = cudaStream_t(GpuResources*);
    constexpr const char* kSymbol =
            "_ZN5faiss3gpu12GpuResources29getDefaultStreamCurrentDeviceEv";
    // Never destroyed: FAISS may search while the process ends.
    static auto& mutex = *new std::mutex;
    static auto& found = *new std::map<void*, Function*>;
    Function* function = nullptr;
    {
        const std::lock_guard<std::mutex> lock(mutex);
        const auto known = found.find(original.address);
        function = known != found.end()
                ? known->second
                : reinterpret_cast<Function*>(symbolBehind(original, kSymbol));
        found[original.address] = function;
    }
    if (!function) {
        throw Error(std::string("FAISS has no ") + kSymbol);
    }
    return function(resources);
}

/// Whether what we read of an array is what FAISS means by it, as far as it
/// tells by itself.
template <class T>
bool isAsKnown(const DeviceVector<T>& array, const GpuResources* resources) {
    const auto& memory = array.alloc_;
    return array.res_ == resources && array.num_ <= array.capacity_ &&
            (array.num_ == 0 ||
             (memory.res == resources && memory.data &&
              memory.device == array.allocInfo_.device &&
              memory.size / sizeof(T) >= array.num_));
}

template <class Index>
bool isDense(const Index* sizes, const Index* strides) {
    // The stride of a single row may be anything.
    return sizes[0] <= 1 || strides[0] == sizes[1];
}

/// All that the two functions have in common.
template <class Index>
struct ListCall {
    Matrix<float, Index>& queries;
    Matrix<int64_t, Index>& listIds;
    DeviceVector<void*>& listData;
    DeviceVector<void*>& listIndices;
    IndicesOptions indicesOptions;
    DeviceVector<Index>& listLengths;
    int k;
    MetricType metric;
    bool useResidual;
    GpuScalarQuantizer* scalarQ;
    Matrix<float, Index>& outDistances;
    Matrix<int64_t, Index>& outIndices;
    GpuResources* resources;
};

/// What FAISS's functions assert, or take for granted.
template <class Index>
std::string mismatchOf(const ListCall<Index>& c) {
    const Index q = c.queries.size_[0];
    for (const Index* size : {c.outDistances.size_, c.outIndices.size_}) {
        if (size[0] != q || size[1] != c.k) {
            return "an output is " + shapeText(size[0], size[1]) +
                    ", expected " + shapeText(q, c.k);
        }
    }
    if (c.listIds.size_[0] != q) {
        return "lists are given for " + std::to_string(c.listIds.size_[0]) +
                " queries, there are " + std::to_string(q);
    }
    if (c.queries.size_[1] < 1) {
        return "queries have " + std::to_string(c.queries.size_[1]) +
                " dimensions";
    }
    if (!isAsKnown(c.listData, c.resources) ||
        !isAsKnown(c.listIndices, c.resources) ||
        !isAsKnown(c.listLengths, c.resources)) {
        return "a DeviceVector is not what it is in FAISS 1.7.3 to 1.15";
    }
    const size_t numLists = c.listLengths.num_;
    if (numLists == 0 || numLists > INT32_MAX || c.listData.num_ != numLists ||
        c.listIndices.num_ != numLists) {
        return "there are " + std::to_string(c.listData.num_) + " lists, " +
                std::to_string(c.listIndices.num_) + " of ids and " +
                std::to_string(numLists) + " lengths";
    }
    if (c.metric != faiss::METRIC_L2 &&
        c.metric != faiss::METRIC_INNER_PRODUCT) {
        return "metric = " + std::to_string(int(c.metric)) +
                " is neither L2 nor inner product";
    }
    if (c.indicesOptions < faiss::gpu::INDICES_CPU ||
        c.indicesOptions > faiss::gpu::INDICES_64_BIT) {
        return "indicesOptions = " + std::to_string(int(c.indicesOptions)) +
                " is not known";
    }
    return "";
}

template <class Index>
std::string leftOf(const ListCall<Index>& c) {
    if (c.scalarQ) {
        return "scans of lists with a scalar quantizer";
    }
    if (c.useResidual) {
        return "scans of lists of residuals";
    }
    const bool areDense = isDense(c.queries.size_, c.queries.stride_) &&
            isDense(c.listIds.size_, c.listIds.stride_) &&
            isDense(c.outDistances.size_, c.outDistances.stride_) &&
            isDense(c.outIndices.size_, c.outIndices.stride_);
    return areDense ? "" : "scans of tensors with gaps between their rows";
}

template <class Index>
ListRequest makeRequest(const ListCall<Index>& c, ListLayout layout) {
    ListRequest r;
    r.left = leftOf(c);
    r.mismatch = r.left.empty() ? mismatchOf(c) : "";
    r.metric = c.metric == faiss::METRIC_INNER_PRODUCT ? Metric::InnerProduct
                                                       : Metric::L2;
    r.lists.numLists = idx_t(c.listLengths.num_);
    r.lists.d = int(c.queries.size_[1]);
    r.lists.layout = layout;
    r.lists.vectors = static_cast<const void* const*>(c.listData.alloc_.data);
    r.lists.lengths = c.listLengths.alloc_.data;
    r.lists.lengths64 = sizeof(Index) == 8;
    r.lists.idKind = c.indicesOptions == faiss::gpu::INDICES_64_BIT
            ? ListIds::Given64
            : c.indicesOptions == faiss::gpu::INDICES_32_BIT ? ListIds::Given32
                                                             : ListIds::Places;
    r.lists.ids = static_cast<const void* const*>(c.listIndices.alloc_.data);
    r.numQueries = c.queries.size_[0];
    r.nprobe = int(c.listIds.size_[1]);
    r.k = c.k;
    r.queries = c.queries.data_;
    r.probes = c.listIds.data_;
    r.outDistances = c.outDistances.data_;
    r.outIds = c.outIndices.data_;
    return r;
}

/// Searches with our kernels, or as FAISS does.
template <class F, class Index, class... Arguments>
void run(
        Replacement& replacement,
        ListLayout layout,
        const ListCall<Index>& c,
        Arguments&&... arguments) {
    const ListRequest request = makeRequest(c, layout);
    const auto work = [&](const Original& original) {
        return request.left.empty()
                ? searchLists(request, streamOf(original, c.resources))
                : request.left;
    };
    replacement.call<F>(
            refusalOf(request), work, std::forward<Arguments>(arguments)...);
}

template <class Index>
void runInterleaved(
        Replacement& replacement,
        const ListCall<Index>& c,
        Cube<float, Index>& residualBase) {
    run<InterleavedScanFunction<Index>>(
            replacement,
            ListLayout::Interleaved,
            c,
            c.queries,
            c.listIds,
            c.listData,
            c.listIndices,
            c.indicesOptions,
            c.listLengths,
            c.k,
            c.metric,
            c.useResidual,
            residualBase,
            c.scalarQ,
            c.outDistances,
            c.outIndices,
            c.resources);
}

template <class Index>
void runRows(
        Replacement& replacement,
        const ListCall<Index>& c,
        Index maxListLength,
        Cube<float, Index>& residualBase) {
    run<FlatScanFunction<Index>>(
            replacement,
            ListLayout::Rows,
            c,
            c.queries,
            c.listIds,
            c.listData,
            c.listIndices,
            c.indicesOptions,
            c.listLengths,
            maxListLength,
            c.k,
            c.metric,
            c.useResidual,
            residualBase,
            c.scalarQ,
            c.outDistances,
            c.outIndices,
            c.resources);
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
            {queries,
             listIds,
             listData,
             listIndices,
             indicesOptions,
             listLengths,
             k,
             metric,
             useResidual,
             scalarQ,
             outDistances,
             outIndices,
             resources},
            residualBase);
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
            {queries,
             listIds,
             listData,
             listIndices,
             indicesOptions,
             listLengths,
             k,
             metric,
             useResidual,
             scalarQ,
             outDistances,
             outIndices,
             resources},
            residualBase);
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
            {queries,
             listIds,
             listData,
             listIndices,
             indicesOptions,
             listLengths,
             k,
             metric,
             useResidual,
             scalarQ,
             outDistances,
             outIndices,
             resources},
            maxListLength,
            residualBase);
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
            {queries,
             listIds,
             listData,
             listIndices,
             indicesOptions,
             listLengths,
             k,
             metric,
             useResidual,
             scalarQ,
             outDistances,
             outIndices,
             resources},
            maxListLength,
            residualBase);
}

} // namespace faiss::gpu
