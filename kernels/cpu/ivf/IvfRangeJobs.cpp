#include "kernels/cpu/ivf/IvfRangeJobs.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <utility>

namespace faiss_bits::cpu {

namespace {

/// Vectors of a piece of a list, at least.
constexpr idx_t kLeastColumns = 4096;

/// Pairs of a job of a query in parts, about.
double mostPairs(
        const IvfRangeProblem& problem,
        const std::vector<idx_t>& pairs,
        int threads) {
    constexpr idx_t kPartsPerThread = 4;
    double most = std::numeric_limits<double>::infinity();
    if (threads > 1) {
        const double all =
                std::accumulate(pairs.begin(), pairs.end(), double(0));
        // Of many queries just those that are as much as many others.
        const bool areMany = problem.numQueries >= kPartsPerThread * threads;
        most = all / double(areMany ? threads : kPartsPerThread * threads);
    }
    return problem.interrupt
            ? std::min(most, kIvfRangeOperations / (2.0 * problem.d))
            : most;
}

class IvfRangeCutter {
   public:
    IvfRangeCutter(const IvfRangeProblem& problem, double most, int threads)
            : problem_(problem),
              most_(most),
              mostColumns_(idx_t(std::clamp(most, double(kLeastColumns), 1e9))),
              ownBlocks_(threads > 1),
              numBlocks_(threads) {
        jobs_.reserve(problem.numQueries);
    }

    void add(idx_t query, idx_t pairs) {
        if (double(pairs) <= most_) {
            jobs_.push_back({query, 0, problem_.nprobe, 0, -1, pairs, -1});
        } else {
            cut(query);
        }
    }

    std::vector<IvfRangeJob>& jobs() {
        return jobs_;
    }
    idx_t numBlocks() const {
        return numBlocks_;
    }

   private:
    void addPart(IvfRangeJob job) {
        job.block = ownBlocks_ ? numBlocks_++ : -1;
        jobs_.push_back(job);
    }

    void cut(idx_t query) {
        const idx_t* probes = problem_.probes + query * problem_.nprobe;
        IvfRangeJob job = {query, 0, 0, 0, -1, 0, -1};
        for (idx_t i = 0; i < problem_.nprobe; ++i) {
            const idx_t count = countAllowed(problem_, probes[i]);
            const bool isLong = count > mostColumns_;
            if (job.pairs > 0 &&
                (isLong || double(job.pairs + count) > most_)) {
                addPart(job);
                job.begin = i;
                job.pairs = 0;
            }
            job.end = i + 1;
            if (isLong) {
                cutList(query, i, count);
                job.begin = i + 1;
            } else {
                job.pairs += count;
            }
        }
        if (job.pairs > 0) {
            addPart(job);
        }
    }

    void cutList(idx_t query, idx_t probe, idx_t count) {
        const idx_t pieces = (count + mostColumns_ - 1) / mostColumns_;
        idx_t first = 0;
        for (idx_t i = 0; i < pieces; ++i) {
            const idx_t columns = count / pieces + (i < count % pieces);
            addPart({query, probe, probe + 1, first, columns, columns, -1});
            first += columns;
        }
    }

    const IvfRangeProblem& problem_;
    const double most_;
    const idx_t mostColumns_; ///< of a piece of a list
    const bool ownBlocks_; ///< a query in parts has threads beside each other
    idx_t numBlocks_;
    std::vector<IvfRangeJob> jobs_;
};

} // namespace

std::vector<IvfRangeJob> cutIvfRange(
        const IvfRangeProblem& problem,
        const std::vector<idx_t>& pairs,
        int threads,
        idx_t& numBlocks) {
    IvfRangeCutter cutter(problem, mostPairs(problem, pairs, threads), threads);
    for (idx_t query = 0; query < problem.numQueries; ++query) {
        cutter.add(query, pairs[query]);
    }
    numBlocks = cutter.numBlocks();
    return std::move(cutter.jobs());
}

} // namespace faiss_bits::cpu
