#include "faiss_bits/dropin/ListCall.h"

#include "kernels/common/Error.h"

namespace faiss_bits::dropin {

cudaStream_t streamOf(
        const Original& original,
        faiss::gpu::GpuResources* resources) {
    using Function = cudaStream_t(faiss::gpu::GpuResources*);
    constexpr const char* kSymbol =
            "_ZN5faiss3gpu12GpuResources29getDefaultStreamCurrentDeviceEv";
    auto* function =
            reinterpret_cast<Function*>(symbolBehind(original, kSymbol));
    if (!function) {
        throw Error(std::string("FAISS has no ") + kSymbol);
    }
    return function(resources);
}

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

namespace {

template <class Index>
std::string leftOf(const ListCall<Index>& c) {
    const bool areDense = isDense(c.queries.size_, c.queries.stride_) &&
            isDense(c.listIds.size_, c.listIds.stride_) &&
            isDense(c.outDistances.size_, c.outDistances.stride_) &&
            isDense(c.outIndices.size_, c.outIndices.stride_);
    return areDense ? "" : "scans of tensors with gaps between their rows";
}

} // namespace

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

template std::string mismatchOf(const ListCall<int>&);
template std::string mismatchOf(const ListCall<int64_t>&);
template ListRequest makeRequest(const ListCall<int>&, ListLayout);
template ListRequest makeRequest(const ListCall<int64_t>&, ListLayout);

} // namespace faiss_bits::dropin
