// Searches of IndexFusedIVFFlat.

#include <algorithm>
#include <cstring>
#include <limits>
#include <mutex>
#include <typeinfo>
#include <vector>

#include <faiss/IndexFlat.h>
#include <faiss/impl/AuxIndexStructures.h>
#include <faiss/impl/FaissAssert.h>
#include <faiss/invlists/DirectMap.h>
#include <faiss/invlists/InvertedLists.h>
#include <faiss/utils/utils.h>

#include "faiss_bits/common/FaissErrors.h"
#include "faiss_bits/common/FaissMetric.h"
#include "faiss_bits/common/Interrupt.h"
#include "faiss_bits/flat/FusedDistance.h"
#include "faiss_bits/flat/IndexFusedFlat.h"
#include "faiss_bits/flat/SelectedIds.h"
#include "faiss_bits/ivf/FusedIvfSearch.h"
#include "faiss_bits/ivf/IndexFusedIVFFlat.h"
#include "faiss_bits/ivf/ProbedLists.h"
#include "kernels/cpu/Range.h"
#include "kernels/cpu/ivf/IvfKnn.h"

namespace faiss_bits {

using detail::FaissLists;
using detail::FusedIvfSearch;
using detail::requireCount;
using detail::requireNotNull;
using detail::requirePositive;

namespace {

/// Numbers of lists that are found at a time: 12 bytes each.
constexpr idx_t kMostProbes = idx_t(1) << 23;

/// Throws for what would have to be ignored.
void requireParams(const faiss::SearchParameters& params) {
    if (typeid(params) == typeid(faiss::SearchParameters)) {
        return;
    }
    FAISS_THROW_IF_NOT_FMT(
            typeid(params) == typeid(faiss::SearchParametersIVF),
            "params is a %s: this index takes SearchParametersIVF",
            faiss::demangle_cpp_symbol(typeid(params).name()).c_str());
    const auto& ivf = static_cast<const faiss::SearchParametersIVF&>(params);
    FAISS_THROW_IF_NOT_MSG(
            !gpu::limitsLists(ivf),
            "params->max_lists_num is set: only 0 is supported, nprobe lists");
    FAISS_THROW_IF_NOT_MSG(
            !detail::fillsTopK(ivf) || ivf.max_codes == 0,
            "params->ensure_topk_full is not supported together with "
            "max_codes");
    FAISS_THROW_IF_NOT_MSG(
            !detail::hasListContext(ivf),
            "params->inverted_list_context is set: only null is supported");
}

/// The nearest of numLists lists of n queries, -1 where there is none; by our
/// kernels, where the quantizer is a matrix of centroids.
void findLists(
        const faiss::Index& quantizer,
        size_t numLists,
        idx_t n,
        const float* x,
        idx_t nprobe,
        float* distances,
        idx_t* lists,
        const faiss::SearchParameters* params) {
    const auto* flat = dynamic_cast<const faiss::IndexFlat*>(&quantizer);
    if (!flat || !isPlainFlat(*flat) ||
        !detail::findMetric(flat->metric_type)) {
        // FAISS's flat indexes write no label where no distance is a number.
        std::fill_n(lists, n * nprobe, idx_t(-1));
        quantizer.search(n, x, nprobe, distances, lists, params);
        std::replace_if(
                lists,
                lists + n * nprobe,
                [&](idx_t list) { return list >= idx_t(numLists); },
                idx_t(-1));
        return;
    }
    cpu::KnnProblem<float> problem;
    problem.metric = fusedMetricOf(flat->metric_type, flat->metric_arg);
    problem.metricArg = flat->metric_arg;
    problem.d = int(flat->d);
    problem.numQueries = n;
    problem.queries = x;
    problem.numVectors = std::min<idx_t>(flat->ntotal, idx_t(numLists));
    problem.vectors = flat->get_xb();
    std::vector<idx_t> selected;
    if (params) {
        FAISS_THROW_IF_NOT_FMT(
                typeid(*params) == typeid(faiss::SearchParameters),
                "params->quantizer_params is a %s: a flat quantizer takes a "
                "plain SearchParameters",
                faiss::demangle_cpp_symbol(typeid(*params).name()).c_str());
        if (params->sel) {
            selected = detail::selectedIds(*params->sel, problem.numVectors);
            problem.vectorIds = selected.data();
            problem.numVectors = idx_t(selected.size());
        }
    }
    problem.k = nprobe;
    problem.outDistances = distances;
    problem.outIds = lists;
    bfKnnFused(problem);
}

/// FAISS counts them by int.
void prefetch(
        const faiss::InvertedLists& invlists,
        idx_t probes,
        const idx_t* lists) {
    for (idx_t begin = 0; begin < probes; begin += kMostProbes) {
        invlists.prefetch_lists(
                lists + begin, int(std::min(kMostProbes, probes - begin)));
    }
}

/// FAISS's own counters, which all its indexes share.
void addToStats(const faiss::IndexIVFStats& stats) {
    static std::mutex mutex;
    const std::lock_guard<std::mutex> lock(mutex);
    faiss::indexIVF_stats.add(stats);
}

} // namespace

FusedIvfSearch IndexFusedIVFFlat::searchOf_(
        idx_t n,
        idx_t k,
        const faiss::SearchParameters* params) const {
    requireCount(n, "n");
    requirePositive(k, "k");
    FAISS_THROW_IF_NOT_MSG(is_trained, "the index is not trained");
    requireNotNull(quantizer, "quantizer");
    requireNotNull(invlists, "invlists");
    FAISS_THROW_IF_NOT_FMT(
            !(parallel_mode & PARALLEL_MODE_NO_HEAP_INIT),
            "parallel_mode = %d: results are not added to those of an earlier "
            "search",
            int(parallel_mode));
    FAISS_THROW_IF_NOT_FMT(
            invlists->nlist == nlist && invlists->code_size == code_size &&
                    code_size == sizeof(float) * size_t(d),
            "invlists has %zu lists of codes of %zu bytes, but nlist = %zu and "
            "d = %lld",
            size_t(invlists->nlist),
            size_t(invlists->code_size),
            size_t(nlist),
            (long long)d);
    FAISS_THROW_IF_NOT_MSG(
            !detail::usesIterator(*invlists),
            "invlists are read by an iterator: only lists in memory are "
            "supported");
    FusedIvfSearch search;
    search.n = n;
    search.k = k;
    size_t probes = nprobe, codes = max_codes;
    if (params) {
        requireParams(*params);
        search.sel = params->sel;
        if (const auto* ivf =
                    dynamic_cast<const faiss::SearchParametersIVF*>(params)) {
            probes = ivf->nprobe;
            codes = ivf->max_codes;
            search.quantizerParams = ivf->quantizer_params;
        }
    }
    requirePositive(probes, "nprobe");
    search.nprobe = idx_t(std::min(probes, size_t(nlist)));
    search.mostCodes =
            idx_t(std::min(codes, size_t(std::numeric_limits<idx_t>::max())));
    return search;
}

void IndexFusedIVFFlat::search(
        idx_t n,
        const float* x,
        idx_t k,
        float* distances,
        idx_t* labels,
        const faiss::SearchParameters* params) const {
    const FusedIvfSearch search = searchOf_(n, k, params);
    if (n == 0) {
        return;
    }
    requireNotNull(x, "x");
    requireNotNull(distances, "distances");
    requireNotNull(labels, "labels");
    searchAll_(search, x, distances, labels, false);
}

void IndexFusedIVFFlat::searchAll_(
        const FusedIvfSearch& search,
        const float* x,
        float* distances,
        idx_t* labels,
        bool givePlaces) const {
    const idx_t rows = std::min(
            search.n, std::max<idx_t>(4096, kMostProbes / search.nprobe));
    std::vector<idx_t> lists(size_t(rows) * search.nprobe);
    std::vector<float> centroidDistances(lists.size());
    for (idx_t begin = 0; begin < search.n; begin += rows) {
        const idx_t count = std::min(rows, search.n - begin);
        const double start = faiss::getmillisecs();
        faiss::IndexIVFStats ivfStats;
        findLists(
                *quantizer,
                nlist,
                count,
                x + begin * d,
                search.nprobe,
                centroidDistances.data(),
                lists.data(),
                search.quantizerParams);
        ivfStats.quantization_time = faiss::getmillisecs() - start;
        searchLists_(
                search,
                count,
                x + begin * d,
                lists.data(),
                distances + begin * search.k,
                labels + begin * search.k,
                givePlaces,
                &ivfStats);
        ivfStats.search_time = faiss::getmillisecs() - start;
        addToStats(ivfStats);
    }
}

cpu::RangeResult<float> IndexFusedIVFFlat::rangeOf_(
        const FusedIvfSearch& search,
        idx_t n,
        const float* x,
        float radius) const {
    const double start = faiss::getmillisecs();
    std::vector<idx_t> lists(size_t(n) * search.nprobe);
    std::vector<float> distances(lists.size());
    faiss::IndexIVFStats ivfStats;
    findLists(
            *quantizer,
            nlist,
            n,
            x,
            search.nprobe,
            distances.data(),
            lists.data(),
            search.quantizerParams);
    prefetch(*invlists, idx_t(lists.size()), lists.data());
    ivfStats.quantization_time = faiss::getmillisecs() - start;
    auto found = rangeInLists_(search, n, x, radius, lists.data(), ivfStats);
    ivfStats.search_time = faiss::getmillisecs() - start;
    addToStats(ivfStats);
    return found;
}

void IndexFusedIVFFlat::search_preassigned(
        idx_t n,
        const float* x,
        idx_t k,
        const idx_t* assign,
        const float*,
        float* distances,
        idx_t* labels,
        bool store_pairs,
        const faiss::IVFSearchParameters* params,
        faiss::IndexIVFStats* stats) const {
    const FusedIvfSearch search = searchOf_(n, k, params);
    FAISS_THROW_IF_NOT_MSG(
            !(search.sel && store_pairs),
            "store_pairs = true, but params->sel selects ids");
    if (n == 0) {
        return;
    }
    requireNotNull(x, "x");
    requireNotNull(assign, "assign");
    requireNotNull(distances, "distances");
    requireNotNull(labels, "labels");
    for (idx_t i = 0; i < n * search.nprobe; ++i) {
        FAISS_THROW_IF_NOT_FMT(
                assign[i] < idx_t(nlist),
                "assign[%lld] = %lld, but nlist = %zu",
                (long long)i,
                (long long)assign[i],
                size_t(nlist));
    }
    searchLists_(search, n, x, assign, distances, labels, store_pairs, stats);
}

void IndexFusedIVFFlat::searchLists_(
        const FusedIvfSearch& search,
        idx_t n,
        const float* x,
        const idx_t* assign,
        float* distances,
        idx_t* labels,
        bool givePlaces,
        faiss::IndexIVFStats* ivfStats) const {
    const idx_t probes = n * search.nprobe;
    prefetch(*invlists, probes, assign);
    const detail::ProbedLists lists(*this, search, n, assign);
    SearchStats stats;
    auto problem = lists.problemOf<cpu::IvfKnnProblem>(x, stats);
    problem.mostVectors = search.mostCodes;
    problem.k = search.k;
    problem.outDistances = distances;
    problem.outIds = labels;
    problem.givePlaces = givePlaces;
    detail::withFaissErrors([&] { cpu::runIvfKnn(problem); });
    counters_.add(stats);
    if (ivfStats) {
        ivfStats->nq += n;
        for (idx_t i = 0; i < n; ++i) {
            idx_t codes = 0;
            for (idx_t j = 0; j < search.nprobe; ++j) {
                const idx_t list = assign[i * search.nprobe + j];
                const idx_t count = lists.length(list);
                if (search.mostCodes > 0 && codes >= search.mostCodes) {
                    break;
                }
                ivfStats->nlist += count > 0;
                codes += count;
            }
            ivfStats->ndis += search.mostCodes > 0
                    ? std::min(codes, search.mostCodes)
                    : codes;
        }
    }
}

void IndexFusedIVFFlat::search_and_reconstruct(
        idx_t n,
        const float* x,
        idx_t k,
        float* distances,
        idx_t* labels,
        float* recons,
        const faiss::SearchParameters* params) const {
    const FusedIvfSearch search = searchOf_(n, k, params);
    if (n == 0) {
        return;
    }
    requireNotNull(x, "x");
    requireNotNull(distances, "distances");
    requireNotNull(labels, "labels");
    requireNotNull(recons, "recons");
    searchAll_(search, x, distances, labels, true);
    for (idx_t i = 0; i < n * k; ++i) {
        float* to = recons + i * d;
        if (labels[i] < 0) {
            std::fill_n(to, d, std::numeric_limits<float>::quiet_NaN());
            continue;
        }
        const int64_t list = faiss::lo_listno(labels[i]);
        const int64_t place = faiss::lo_offset(labels[i]);
        reconstruct_from_offset(list, place, to);
        labels[i] = invlists->get_single_id(list, place);
    }
}

} // namespace faiss_bits
