// Range search of IndexFusedIVFFlat.

#include <algorithm>
#include <vector>

#include <faiss/impl/AuxIndexStructures.h>
#include <faiss/impl/FaissAssert.h>

#include "faiss_bits/common/Interrupt.h"
#include "faiss_bits/common/RangeArguments.h"
#include "faiss_bits/flat/FusedDistance.h"
#include "faiss_bits/ivf/FusedIvfSearch.h"
#include "faiss_bits/ivf/IndexFusedIVFFlat.h"
#include "faiss_bits/ivf/IvfRangeArguments.h"
#include "faiss_bits/ivf/ProbedLists.h"
#include "kernels/cpu/ivf/IvfRange.h"

namespace faiss_bits {

using detail::FusedIvfSearch;

namespace {

/// Numbers of lists that are found at a time, 12 bytes each; and the least
/// queries.
constexpr idx_t kMostProbes = idx_t(1) << 23, kLeastRows = 4096;

/// The results of queries that follow each other as one, which is new.
void joinRanges(
        std::vector<cpu::RangeResult<float>>& parts,
        faiss::RangeSearchResult& all) {
    size_t query = 0;
    for (const auto& part : parts) {
        for (size_t i = 0; i + 1 < part.limits.size(); ++i) {
            all.lims[query++] = part.limits[i + 1] - part.limits[i];
        }
    }
    all.do_allocation(); // makes limits of the counts
    size_t to = 0;
    for (auto& part : parts) {
        std::copy(
                part.distances.begin(),
                part.distances.end(),
                all.distances + to);
        std::copy(part.ids.begin(), part.ids.end(), all.labels + to);
        to += part.ids.size();
        part = {}; // results need their memory twice, not three times
    }
}

} // namespace

void IndexFusedIVFFlat::range_search(
        idx_t n,
        const float* x,
        float radius,
        faiss::RangeSearchResult* result,
        const faiss::SearchParameters* params) const {
    detail::requireRange(n, x, radius, result);
    detail::requireAllLists(params);
    const FusedIvfSearch search = searchOf_(n, 1, params);
    FAISS_THROW_IF_NOT_FMT(
            0 <= parallel_mode && parallel_mode <= 2,
            "parallel_mode = %d: a range search has 0, 1 and 2",
            int(parallel_mode));
    const idx_t rows = std::max(kLeastRows, kMostProbes / search.nprobe);
    std::vector<cpu::RangeResult<float>> parts;
    for (idx_t begin = 0; begin < n; begin += rows) {
        parts.push_back(rangeOf_(
                search, std::min(rows, n - begin), x + begin * d, radius));
    }
    joinRanges(parts, *result);
}

cpu::RangeResult<float> IndexFusedIVFFlat::rangeInLists_(
        const FusedIvfSearch& search,
        idx_t n,
        const float* x,
        float radius,
        const idx_t* assign,
        faiss::IndexIVFStats& ivfStats) const {
    const idx_t probes = n * search.nprobe;
    const detail::ProbedLists lists(*this, search, n, assign);
    SearchStats stats;
    auto problem = lists.problemOf<cpu::IvfRangeProblem>(x, stats);
    problem.radius = radius;
    cpu::RangeResult<float> found;
    detail::withFaissErrors([&] { found = cpu::runIvfRange(problem); });
    counters_.add(stats);
    ivfStats.nq += n;
    for (idx_t i = 0; i < probes; ++i) {
        const idx_t count = lists.length(assign[i]);
        ivfStats.nlist += count > 0;
        ivfStats.ndis += count;
    }
    return found;
}

} // namespace faiss_bits
