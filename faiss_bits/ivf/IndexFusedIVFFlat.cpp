#include "faiss_bits/ivf/IndexFusedIVFFlat.h"

#include <algorithm>
#include <memory>
#include <typeinfo>
#include <unordered_set>
#include <utility>
#include <vector>

#include <faiss/impl/FaissAssert.h>
#include <faiss/invlists/DirectMap.h>
#include <faiss/invlists/InvertedLists.h>

#include "faiss_bits/cloners/FusedCloner.h"
#include "faiss_bits/common/FaissErrors.h"

namespace faiss_bits {

using detail::requireCount;
using detail::requireNotNull;
using detail::requirePositive;

namespace {

faiss::MetricType checkedMetric(faiss::MetricType metric) {
    FAISS_THROW_IF_NOT_FMT(
            metric == faiss::METRIC_L2 || metric == faiss::METRIC_INNER_PRODUCT,
            "metric = %d is not supported: METRIC_INNER_PRODUCT (%d) and "
            "METRIC_L2 (%d) are",
            int(metric),
            int(faiss::METRIC_INNER_PRODUCT),
            int(faiss::METRIC_L2));
    return metric;
}

faiss::Index* checkedQuantizer(faiss::Index* quantizer, size_t d) {
    requireNotNull(quantizer, "quantizer");
    requirePositive(d, "d");
    FAISS_THROW_IF_NOT_FMT(
            size_t(quantizer->d) == d,
            "quantizer->d = %lld, but d = %zu",
            (long long)quantizer->d,
            d);
    return quantizer;
}

size_t checkedLists(size_t nlist) {
    FAISS_THROW_IF_NOT_FMT(
            nlist >= 1 && nlist < size_t(1) << 31,
            "nlist = %zu is outside 1 .. 2^31 - 1",
            nlist);
    return nlist;
}

const faiss::IndexIVFFlat& checkedSource(const faiss::IndexIVFFlat& index) {
    const std::type_info& type = typeid(index);
    FAISS_THROW_IF_NOT_FMT(
            type == typeid(faiss::IndexIVFFlat) ||
                    type == typeid(IndexFusedIVFFlat),
            "index is a %s, whose lists may hold more than vectors: an "
            "IndexIVFFlat or IndexFusedIVFFlat is needed",
            faiss::demangle_cpp_symbol(type.name()).c_str());
    checkedMetric(index.metric_type);
    requireNotNull(index.quantizer, "index.quantizer");
    requireNotNull(index.invlists, "index.invlists");
    return index;
}

std::unique_ptr<faiss::InvertedLists> copyLists(
        const faiss::InvertedLists& lists) {
    if (typeid(lists) == typeid(faiss::ArrayInvertedLists)) {
        return std::make_unique<faiss::ArrayInvertedLists>(
                static_cast<const faiss::ArrayInvertedLists&>(lists));
    }
    auto copy = std::make_unique<faiss::ArrayInvertedLists>(
            lists.nlist, lists.code_size);
    for (size_t list = 0; list < lists.nlist; ++list) {
        const size_t count = lists.list_size(list);
        if (count > 0) {
            faiss::InvertedLists::ScopedCodes codes(&lists, list);
            faiss::InvertedLists::ScopedIds ids(&lists, list);
            copy->add_entries(list, count, ids.get(), codes.get());
        }
    }
    return copy;
}

/// The first of the lists whose centroids are not the same, or -1.
int64_t firstOtherCentroid(
        const faiss::Index& a,
        const faiss::Index& b,
        size_t nlist) {
    std::vector<float> x(a.d), y(b.d);
    for (size_t list = 0; list < nlist; ++list) {
        a.reconstruct(list, x.data());
        b.reconstruct(list, y.data());
        if (x != y) {
            return list;
        }
    }
    return -1;
}

void requireReady(const faiss::IndexIVFFlat& index, idx_t n) {
    requireCount(n, "n");
    FAISS_THROW_IF_NOT_MSG(index.is_trained, "the index is not trained");
    requireNotNull(index.quantizer, "quantizer");
    requireNotNull(index.invlists, "invlists");
}

/// The lists that vectors belong to, -1 where one has no nearest.
std::vector<idx_t> nearestLists(
        const faiss::IndexIVFFlat& index,
        idx_t n,
        const float* x) {
    // FAISS's flat indexes write no label where no distance is a number.
    std::vector<idx_t> lists(n, -1);
    index.quantizer->assign(n, x, lists.data());
    for (idx_t& list : lists) {
        if (list < 0 || list >= idx_t(index.nlist)) {
            list = -1;
        }
    }
    return lists;
}

/// True if the map knows a place of an id. In an array -1 is that of a vector
/// that is in no list.
bool isInList(const faiss::DirectMap& map, idx_t id) {
    if (map.type == faiss::DirectMap::Hashtable) {
        return map.hashtable.count(id) > 0;
    }
    return 0 <= id && id < idx_t(map.array.size()) && map.array[id] >= 0;
}

/// Every id in a list; in a table, from which all are removed before the new
/// ones are added, each once.
void requireInLists(const faiss::DirectMap& map, idx_t n, const idx_t* ids) {
    const bool isTable = map.type == faiss::DirectMap::Hashtable;
    std::unordered_set<idx_t> seen;
    for (idx_t i = 0; i < n; ++i) {
        FAISS_THROW_IF_NOT_FMT(
                isInList(map, ids[i]),
                "ids = %lld (number %lld of %lld) is in no list",
                (long long)ids[i],
                (long long)i,
                (long long)n);
        FAISS_THROW_IF_NOT_FMT(
                !isTable || seen.insert(ids[i]).second,
                "ids = %lld is there twice",
                (long long)ids[i]);
    }
}

} // namespace

bool isPlainIvf(const faiss::IndexIVFFlat& index) {
    return (typeid(index) == typeid(faiss::IndexIVFFlat) ||
            typeid(index) == typeid(IndexFusedIVFFlat)) &&
            (index.metric_type == faiss::METRIC_L2 ||
             index.metric_type == faiss::METRIC_INNER_PRODUCT) &&
            index.quantizer && index.invlists;
}

IndexFusedIVFFlat::IndexFusedIVFFlat(
        faiss::Index* quantizer,
        size_t d,
        size_t nlist,
        faiss::MetricType metric)
        : faiss::IndexIVFFlat(
                  checkedQuantizer(quantizer, d),
                  d,
                  checkedLists(nlist),
                  checkedMetric(metric)) {}

IndexFusedIVFFlat::IndexFusedIVFFlat(const faiss::IndexIVFFlat& index)
        : faiss::IndexIVFFlat(checkedSource(index)) {
    // The base class has copied pointers.
    own_fields = own_invlists = false;
    quantizer = nullptr;
    invlists = nullptr;
    auto lists = copyLists(*index.invlists);
    quantizer = index_to_fused(index.quantizer);
    own_fields = true;
    invlists = lists.release();
    own_invlists = true;
}

IndexFusedIVFFlat::IndexFusedIVFFlat(const IndexFusedIVFFlat& index)
        : IndexFusedIVFFlat(static_cast<const faiss::IndexIVFFlat&>(index)) {}

IndexFusedIVFFlat::IndexFusedIVFFlat(faiss::IndexIVFFlat&& index)
        : faiss::IndexIVFFlat(checkedSource(index)) {
    index.own_fields = index.own_invlists = false;
    index.quantizer = nullptr;
    index.invlists = nullptr;
    index.ntotal = 0;
}

void IndexFusedIVFFlat::add_with_ids(
        idx_t n,
        const float* x,
        const idx_t* ids) {
    requireReady(*this, n);
    if (n == 0) {
        return;
    }
    requireNotNull(x, "x");
    add_core(n, x, ids, nearestLists(*this, n, x).data());
}

void IndexFusedIVFFlat::update_vectors(
        int n,
        const idx_t* ids,
        const float* x) {
    requireReady(*this, n);
    FAISS_THROW_IF_NOT_MSG(
            !direct_map.no(),
            "the index has no direct map, which says where an id is: call "
            "make_direct_map");
    if (n == 0) {
        return;
    }
    requireNotNull(ids, "ids");
    requireNotNull(x, "x");
    requireInLists(direct_map, n, ids);
    const std::vector<idx_t> lists = nearestLists(*this, n, x);
    const auto none = std::find(lists.begin(), lists.end(), -1);
    FAISS_THROW_IF_NOT_FMT(
            none == lists.end(),
            "x[%lld] is nearest to no list",
            (long long)(none - lists.begin()));
    if (direct_map.type == faiss::DirectMap::Hashtable) {
        remove_ids(faiss::IDSelectorArray(n, ids));
        add_core(n, x, ids, lists.data());
        return;
    }
    direct_map.update_codes(
            invlists,
            n,
            ids,
            lists.data(),
            reinterpret_cast<const uint8_t*>(x));
}

void IndexFusedIVFFlat::check_compatible_for_merge(
        const faiss::Index& otherIndex) const {
    const auto* other = dynamic_cast<const faiss::IndexIVFFlat*>(&otherIndex);
    FAISS_THROW_IF_NOT_FMT(
            other && isPlainIvf(*other),
            "otherIndex is a %s: an IndexFusedIVFFlat takes over the lists of "
            "an IndexFusedIVFFlat or IndexIVFFlat",
            faiss::demangle_cpp_symbol(typeid(otherIndex).name()).c_str());
    FAISS_THROW_IF_NOT_MSG(other != this, "otherIndex is the index itself");
    requireNotNull(quantizer, "quantizer");
    requireNotNull(invlists, "invlists");
    FAISS_THROW_IF_NOT_FMT(
            other->d == d && other->nlist == nlist &&
                    other->metric_type == metric_type,
            "otherIndex has d = %lld, nlist = %zu and metric_type = %d, but "
            "this index %lld, %zu and %d",
            (long long)other->d,
            size_t(other->nlist),
            int(other->metric_type),
            (long long)d,
            size_t(nlist),
            int(metric_type));
    FAISS_THROW_IF_NOT_MSG(
            is_trained && other->is_trained, "both indexes have to be trained");
    FAISS_THROW_IF_NOT_MSG(
            direct_map.no() && other->direct_map.no(),
            "an index with a direct map cannot be merged");
    if (faiss::check_compatible_for_merge_expensive_check &&
        quantizer != other->quantizer) {
        const int64_t list =
                firstOtherCentroid(*quantizer, *other->quantizer, nlist);
        FAISS_THROW_IF_NOT_FMT(
                list < 0,
                "otherIndex has another centroid of list %lld",
                (long long)list);
    }
}

SearchStats IndexFusedIVFFlat::stats() const {
    return counters_.stats();
}

void IndexFusedIVFFlat::reset_stats() {
    counters_.reset();
}

} // namespace faiss_bits
