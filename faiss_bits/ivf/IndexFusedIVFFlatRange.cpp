// Range search of IndexFusedIVFFlat, some queries at a time.

#include <algorithm>
#include <memory>
#include <thread>
#include <vector>

#include <faiss/impl/FaissAssert.h>
#include <faiss/utils/utils.h>

#include "faiss_bits/common/Interrupt.h"
#include "faiss_bits/common/RangeArguments.h"
#include "faiss_bits/ivf/FusedIvfSearch.h"
#include "faiss_bits/ivf/IndexFusedIVFFlat.h"
#include "faiss_bits/ivf/IvfRangeArguments.h"

namespace faiss_bits {

using detail::FusedIvfSearch;

namespace {

/// Milliseconds that queries are searched for before there are twice as many of
/// them.
constexpr double kShort = 50;

/// Queries of a range search that take some milliseconds; FAISS has a thread
/// for each.
idx_t queriesAtFirst(const IndexFusedIVFFlat& index, idx_t nprobe) {
    constexpr double kComponents = 1 << 24; // some milliseconds of a core
    const double ofQuery = double(index.d) *
            (double(index.ntotal) / double(index.nlist) * double(nprobe) +
             double(index.nlist));
    return std::max<idx_t>(
            idx_t(kComponents / std::max(ofQuery, 1.)),
            std::thread::hardware_concurrency());
}

/// The results of queries that follow each other as one, which is new.
void joinRanges(
        std::vector<std::unique_ptr<faiss::RangeSearchResult>>& parts,
        faiss::RangeSearchResult& all) {
    size_t query = 0;
    for (const auto& part : parts) {
        for (size_t i = 0; i < part->nq; ++i) {
            all.lims[query++] = part->lims[i + 1] - part->lims[i];
        }
    }
    all.do_allocation(); // makes limits of the counts
    size_t to = 0;
    for (auto& part : parts) {
        const size_t count = part->lims[part->nq];
        std::copy_n(part->distances, count, all.distances + to);
        std::copy_n(part->labels, count, all.labels + to);
        to += count;
        part.reset(); // results need their memory twice, not three times
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
    // FAISS throws for others from a parallel region, which ends the process.
    FAISS_THROW_IF_NOT_FMT(
            0 <= parallel_mode && parallel_mode <= 2,
            "parallel_mode = %d: a range search has 0, 1 and 2",
            int(parallel_mode));
    idx_t rows = std::max<idx_t>(queriesAtFirst(*this, search.nprobe), 1);
    if (n <= rows) {
        rangeOf_(search, n, x, radius, result);
        return;
    }
    // FAISS asks for no interrupts on its way.
    std::vector<std::unique_ptr<faiss::RangeSearchResult>> parts;
    for (idx_t begin = 0; begin < n;) {
        detail::throwIfInterrupted();
        const double start = faiss::getmillisecs();
        const idx_t count = std::min(rows, n - begin);
        parts.push_back(std::make_unique<faiss::RangeSearchResult>(count));
        parts.back()->buffer_size = result->buffer_size;
        rangeOf_(search, count, x + begin * d, radius, parts.back().get());
        begin += count;
        rows *= faiss::getmillisecs() - start < kShort ? 2 : 1;
    }
    joinRanges(parts, *result);
}

} // namespace faiss_bits
