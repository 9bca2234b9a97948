#include <algorithm>
#include <typeinfo>
#include <vector>

#include <faiss/impl/AuxIndexStructures.h>
#include <faiss/impl/FaissAssert.h>

#include "faiss_bits/common/FaissErrors.h"
#include "faiss_bits/common/RangeArguments.h"
#include "faiss_bits/flat/FusedDistance.h"
#include "faiss_bits/flat/IndexFusedFlat.h"
#include "faiss_bits/flat/SelectedIds.h"

/// The searches of IndexFusedFlat.
namespace faiss_bits {

using detail::requireCount;
using detail::requireIds;
using detail::requireNotNull;
using detail::requirePositive;

namespace {

/// A list of ids, or the first n vectors for want of one.
void requireList(
        idx_t n,
        const idx_t* ids,
        idx_t ntotal,
        const char* countName,
        const char* name) {
    requireCount(n, countName);
    FAISS_THROW_IF_NOT_FMT(
            ids || n <= ntotal,
            "%s = %lld, but without %s there are only the %lld vectors of the "
            "index",
            countName,
            (long long)n,
            name,
            (long long)ntotal);
    if (ids) {
        requireIds(n, ids, ntotal, name, false);
    }
}

/// A search in all vectors of the index; the queries are still missing.
template <class Problem>
Problem problemOf(const IndexFusedFlat& index) {
    Problem problem;
    problem.metric = fusedMetricOf(index.metric_type, index.metric_arg);
    problem.metricArg = index.metric_arg;
    problem.d = index.d;
    problem.vectors = index.get_xb();
    problem.numVectors = index.ntotal;
    problem.choice = index.choice;
    problem.mode = index.search_mode;
    return problem;
}

/// Leaves what `params` selects in the search; the ids lie in `ids`.
void applyParameters(
        const faiss::SearchParameters* params,
        cpu::Problem<float>& problem,
        std::vector<idx_t>& ids) {
    if (!params) {
        return;
    }
    FAISS_THROW_IF_NOT_FMT(
            typeid(*params) == typeid(faiss::SearchParameters),
            "params is a %s: a flat index would have to ignore what it asks "
            "for; only a plain SearchParameters is taken",
            faiss::demangle_cpp_symbol(typeid(*params).name()).c_str());
    if (!params->sel) {
        return;
    }
    ids = detail::selectedIds(*params->sel, problem.numVectors);
    if (idx_t(ids.size()) < problem.numVectors) {
        problem.vectorIds = ids.data();
        problem.numVectors = ids.size();
    }
}

} // namespace

void IndexFusedFlat::search(
        idx_t n,
        const float* x,
        idx_t k,
        float* distances,
        idx_t* labels,
        const faiss::SearchParameters* params) const {
    requireCount(n, "n");
    requirePositive(k, "k");
    auto problem = problemOf<cpu::KnnProblem<float>>(*this);
    std::vector<idx_t> ids;
    applyParameters(params, problem, ids);
    if (n == 0) {
        return;
    }
    requireNotNull(x, "x");
    requireNotNull(distances, "distances");
    requireNotNull(labels, "labels");
    problem.numQueries = n;
    problem.queries = x;
    problem.k = k;
    problem.outDistances = distances;
    problem.outIds = labels;
    SearchStats stats;
    problem.stats = &stats;
    bfKnnFused(problem);
    counters_.add(stats);
}

void IndexFusedFlat::range_search(
        idx_t n,
        const float* x,
        float radius,
        faiss::RangeSearchResult* result,
        const faiss::SearchParameters* params) const {
    detail::requireRange(n, x, radius, result);
    auto problem = problemOf<cpu::Problem<float>>(*this);
    std::vector<idx_t> ids;
    applyParameters(params, problem, ids);
    problem.numQueries = n;
    problem.queries = x;
    SearchStats stats;
    problem.stats = &stats;
    const cpu::RangeResult<float> found = bfRangeFused(problem, radius);
    counters_.add(stats);
    for (idx_t i = 0; i < n; ++i) {
        result->lims[i] = found.limits[i + 1] - found.limits[i];
    }
    result->do_allocation(); // makes limits of the counts
    std::copy(
            found.distances.begin(), found.distances.end(), result->distances);
    std::copy(found.ids.begin(), found.ids.end(), result->labels);
}

void IndexFusedFlat::assign(idx_t n, const float* x, idx_t* labels, idx_t k)
        const {
    requireCount(n, "n");
    requirePositive(k, "k");
    if (n > 0) {
        requireNotNull(x, "x");
        requireNotNull(labels, "labels");
    }
    std::vector<float> distances(size_t(n) * k);
    search(n, x, k, distances.data(), labels);
}

void IndexFusedFlat::knn_subset(
        idx_t n_query_ids,
        const idx_t* query_ids,
        idx_t n_reference_ids,
        const idx_t* reference_ids,
        idx_t k,
        float* distances,
        idx_t* labels) const {
    requireList(n_query_ids, query_ids, ntotal, "n_query_ids", "query_ids");
    requireList(
            n_reference_ids,
            reference_ids,
            ntotal,
            "n_reference_ids",
            "reference_ids");
    requirePositive(k, "k");
    auto problem = problemOf<cpu::KnnProblem<float>>(*this);
    if (n_query_ids == 0) {
        return;
    }
    requireNotNull(distances, "distances");
    requireNotNull(labels, "labels");
    problem.numQueries = n_query_ids;
    problem.queries = get_xb();
    problem.queryIds = query_ids;
    problem.numVectors = n_reference_ids;
    problem.vectorIds = reference_ids;
    problem.k = k;
    problem.outDistances = distances;
    problem.outIds = labels;
    SearchStats stats;
    problem.stats = &stats;
    bfKnnFused(problem);
    counters_.add(stats);
}

std::string IndexFusedFlat::plan(idx_t n, idx_t k) const {
    requireCount(n, "n");
    requirePositive(k, "k");
    auto problem = problemOf<cpu::KnnProblem<float>>(*this);
    problem.numQueries = n;
    problem.k = k;
    return fusedPlanText(problem);
}

} // namespace faiss_bits
