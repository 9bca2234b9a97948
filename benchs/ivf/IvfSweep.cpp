#include "benchs/ivf/IvfSweepCells.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <exception>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "benchs/common/Report.h"
#include "benchs/ivf/IvfData.h"
#include "benchs/ivf/IvfRows.h"
#include "benchs/ivf/IvfSearches.h"
#include "benchs/ivf/IvfSettings.h"

namespace faiss_bits::bench {
namespace {

/// Behind is what is slower by more than this, and not by less than the wall
/// clock tells apart.
constexpr double kNoise = 1.05;
constexpr double kNoiseMs = 0.015;

struct Result {
    double ours = 0;   ///< ms
    double theirs = 0; ///< 0: FAISS refused
    std::string text;

    double ratio() const {
        return theirs / ours;
    }
    bool isBehind() const {
        return ours > kNoise * theirs && ours - theirs >= kNoiseMs;
    }
};

class IvfSweep {
   public:
    IvfSweep(const Options& options, const IvfSettings& settings)
            : options_(options),
              settings_(settings),
              budget_(options.maxSeconds),
              report_(options.out, metaOf(options, settings), 2),
              only_(settings.only.begin(), settings.only.end()) {
        if (!settings.sift.empty()) {
            sift_ = readVectors(settings.sift);
        }
    }

    int run() {
        const auto indexes =
                drawIvfSweep(settings_.seed, settings_.sweepCells, sift_.d > 0);
        std::printf(
                "seed %llu, %zu indexes\n",
                (unsigned long long)settings_.seed,
                indexes.size());
        for (const IvfSweepIndex& index : indexes) {
            const bool isWanted = only_.empty() ||
                    std::any_of(index.searches.begin(),
                                index.searches.end(),
                                [&](const auto& search) {
                                    return only_.count(search.cell) > 0;
                                });
            if (budget_.isSpent()) {
                std::printf(
                        "--max-seconds is spent: from cell %d left out\n",
                        index.searches.front().cell);
                break;
            }
            if (isWanted) {
                runIndex(index);
            }
        }
        report_.save();
        summarize();
        return wrong_;
    }

   private:
    static Meta metaOf(const Options& options, const IvfSettings& settings) {
        Meta meta = collectMeta(options, measureReadBandwidth());
        meta.seed = settings.seed;
        return meta;
    }

    std::vector<float> fromSift(int64_t first, int64_t count) const {
        const auto begin = sift_.values.begin() + first * sift_.d;
        return {begin, begin + count * sift_.d};
    }

    void runIndex(const IvfSweepIndex& index) {
        const int d = index.shape.d;
        int64_t mostQueries = 0;
        for (const auto& search : index.searches) {
            mostQueries = std::max(mostQueries, search.q);
        }
        const bool isSift = index.data == "sift";
        const auto vectors = isSift
                ? fromSift(0, index.n)
                : makeIvfVectors(index.data, index.n, d, index.seed);
        const auto queries = isSift
                ? fromSift(sift_.count() - mostQueries, mostQueries)
                : makeIvfVectors(index.data, mostQueries, d, index.seed + 1);
        IvfSearches searches(
                resources_,
                index.shape,
                vectors,
                queries,
                options_.wants("faiss"));
        for (const auto& search : index.searches) {
            if (only_.empty() || only_.count(search.cell)) {
                runCell(index, search, searches);
            }
        }
    }

    void runCell(
            const IvfSweepIndex& index,
            const IvfSweepIndex::Search& search,
            IvfSearches& searches) {
        const auto probed = searches.probed(search.nprobe, search.q);
        const IvfCell cell{
                search.nprobe,
                search.q,
                search.k,
                probed.pairs,
                probed.vectors};
        const bool isL2 = index.shape.metric == faiss::METRIC_L2;
        const auto rowOf = [&](const char* method) {
            Row row = ivfRow(
                    "ivf_sweep", method, index.shape, index.data, index.n);
            return row.text("metric", isL2 ? "L2" : "IP")
                    .integer("cell", search.cell);
        };
        TimingMode mode;
        mode.totalMs = 20;
        mode.mostRepeats = 21;
        mode.fewMs = 5;
        mode.onceMs = 15;
        IvfIndexes& both = searches.indexes();
        Result result;
        result.ours =
                searches.time(both.ours(), cell.nprobe, cell.q, cell.k, mode)
                        .ms;
        const auto found = searches.check(cell.nprobe, cell.q, cell.k);
        wrong_ += found.wrong > 0;
        std::string why = both.whyNot();
        IvfReference::Found theirs;
        if (both.rival()) {
            try {
                result.theirs = searches.time(*both.rival(),
                                              cell.nprobe,
                                              cell.q,
                                              cell.k,
                                              mode)
                                        .ms;
                theirs = searches.check(cell.nprobe, cell.q, cell.k);
            } catch (const std::exception& error) {
                why = error.what();
            }
        }
        Row ours = rowOf("faiss_bits");
        addIvfTimes(ours, index.shape, cell, result.ours)
                .integer("places", found.places)
                .integer("wrong", found.wrong);
        if (result.theirs > 0) {
            ours.number("ratio", result.ratio());
        }
        report_.add(ours);
        Row rival = rowOf("faiss");
        if (result.theirs > 0) {
            report_.add(addIvfTimes(rival, index.shape, cell, result.theirs)
                                .number("recall", theirs.recall()));
        }
        char text[256];
        std::snprintf(
                text,
                sizeof(text),
                "%3d %-8s %s %-10s n=%-7lld d=%-3d nlist=%-4d nprobe=%-4d "
                "q=%-5lld k=%-4d pairs=%.3g: %.4f ms, faiss %.4f ms",
                search.cell,
                index.shape.kind.name.c_str(),
                isL2 ? "L2" : "IP",
                index.data.c_str(),
                (long long)index.n,
                index.shape.d,
                index.shape.nlist,
                cell.nprobe,
                (long long)cell.q,
                cell.k,
                double(cell.pairs),
                result.ours,
                result.theirs);
        result.text = text;
        std::printf(
                "%5.0fs %.2f %s%s %s\n",
                budget_.seconds(),
                result.ratio(),
                text,
                found.wrong ? " WRONG" : "",
                result.theirs > 0 ? "" : why.c_str());
        std::fflush(stdout);
        results_.push_back(result);
    }

    /// All that was raced, the worst first.
    void summarize() {
        std::vector<Result> raced;
        double logs = 0;
        int behind = 0;
        for (const Result& result : results_) {
            if (result.theirs > 0) {
                raced.push_back(result);
                logs += std::log(result.ratio());
                behind += result.isBehind();
            }
        }
        std::sort(raced.begin(), raced.end(), [](const auto& a, const auto& b) {
            return a.ratio() < b.ratio();
        });
        std::printf("sorted, FAISS's time over ours:\n");
        for (const Result& result : raced) {
            std::printf(
                    "%s %7.3f %s\n",
                    result.isBehind() ? "BEHIND" : "      ",
                    result.ratio(),
                    result.text.c_str());
        }
        std::printf(
                "%zu cells, %d wrong, %zu raced: %.3f times as fast on "
                "geometric mean, %d behind by more than 5%% and 15 us\n",
                results_.size(),
                wrong_,
                raced.size(),
                std::exp(logs / double(std::max<size_t>(raced.size(), 1))),
                behind);
    }

    const Options& options_;
    const IvfSettings& settings_;
    Budget budget_;
    Report report_;
    std::set<int64_t> only_;
    FileVectors sift_;
    IvfResources resources_;
    std::vector<Result> results_;
    int wrong_ = 0;
};

} // namespace

int runIvfSweep(const Options& options, const IvfSettings& settings) {
    return IvfSweep(options, settings).run();
}

} // namespace faiss_bits::bench
