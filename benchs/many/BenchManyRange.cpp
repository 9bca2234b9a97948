/// Times range searches of vectors that several devices have, split or copied,
/// beside one device's. benchs/README.md says how.

#include <algorithm>
#include <cstdio>
#include <map>
#include <memory>
#include <vector>

#include <faiss/impl/AuxIndexStructures.h>

#include "benchs/common/DeviceData.h"
#include "benchs/common/Options.h"
#include "benchs/common/Report.h"
#include "benchs/common/Timing.h"
#include "benchs/many/Answers.h"
#include "benchs/many/ManyPlaces.h"
#include "benchs/many/SearchTimes.h"

namespace faiss_bits::bench {
namespace {

using faiss::RangeSearchResult;

struct Shapes : ManySettings {
    std::vector<int64_t> ns = {1 << 20};
    int64_t d = 128;
    std::vector<int64_t> qs = {1, 1024, 10240};
    std::vector<double> shares = {0.0001, 0.001, 0.01};
};

class ManyRangeBench {
   public:
    ManyRangeBench(const Options& options, const Shapes& shapes)
            : shapes_(shapes),
              budget_(options.maxSeconds),
              report_(options.out,
                      collectMeta(options, measureReadBandwidth())),
              places_(shapes),
              times_(std::max(
                             kSample,
                             *std::max_element(
                                     shapes.qs.begin(),
                                     shapes.qs.end())),
                     shapes.d,
                     shapes.devices) {}

    int run() {
        for (const int64_t n : shapes_.ns) {
            n_ = n;
            const auto vectors = randomVectors(n, shapes_.d, 1);
            // By parts and, for more than one, by kind.
            std::vector<One> indexes;
            const auto make = [&](const std::string& kind, int parts) {
                indexes.push_back(
                        {kind, parts, places_.ours(kind, parts, shapes_.d)});
                indexes.back().index->add(n, vectors.data());
            };
            make("one", 1);
            for (const std::string& kind : shapes_.kinds) {
                for (const int64_t parts : shapes_.parts) {
                    if (parts > 1) {
                        make(kind, int(parts));
                    }
                }
            }
            for (const int64_t q : shapes_.qs) {
                for (const double share : shapes_.shares) {
                    runCell(indexes, q, share);
                }
            }
        }
        return finishBench(report_, budget_, wrong_);
    }

   private:
    /// Queries that a radius is made of.
    static constexpr int64_t kSample = 64;

    struct One {
        std::string kind;
        int parts;
        std::unique_ptr<faiss::Index> index;
    };

    /// That such a part of the vectors are within, of the median one of some
    /// queries: on average over queries it is more.
    float radiusFor(const faiss::Index& index, double share) const {
        const int64_t k =
                std::max<int64_t>(1, std::llround(share * double(n_)));
        Answers found;
        found.resize(kSample * k);
        index.search(
                kSample,
                times_.hostQueries(),
                k,
                found.distances.data(),
                found.labels.data());
        std::vector<float> last;
        for (int64_t i = 0; i < kSample; ++i) {
            last.push_back(found.distances[i * k + k - 1]);
        }
        std::nth_element(last.begin(), last.begin() + kSample / 2, last.end());
        return last[kSample / 2];
    }

    /// What one index answers is what all others are to.
    void runCell(const std::vector<One>& indexes, int64_t q, double share) {
        const float radius = radiusFor(*indexes.front().index, share);
        std::unique_ptr<RangeSearchResult> want;
        for (const One& one : indexes) {
            if (budget_.isSpent()) {
                std::printf(
                        "--max-seconds is spent: q = %lld, %g left out\n",
                        (long long)q,
                        share);
                return;
            }
            std::unique_ptr<RangeSearchResult> got;
            TimingMode mode;
            mode.wallClock = true;
            mode.leastRepeats = 3;
            mode.before = [&] {
                got = std::make_unique<RangeSearchResult>(q);
                times_.flush();
            };
            const auto search = [&](int) {
                one.index->range_search(q, times_.queries(), radius, got.get());
            };
            const double ms = timeCall(search, mode).ms;
            if (!want) {
                want = std::move(got);
            } else if (const int64_t wrong = wrongQueries(*got, *want)) {
                std::printf(
                        "WRONG: %s of %d, q = %lld, %g: %lld queries\n",
                        one.kind.c_str(),
                        one.parts,
                        (long long)q,
                        share,
                        (long long)wrong);
                ++wrong_;
            }
            if (one.parts > 1) {
                add(one.kind, one.parts, q, share, radius, *want, ms);
                continue;
            }
            for (const std::string& kind : shapes_.kinds) {
                add(kind, one.parts, q, share, radius, *want, ms);
            }
        }
    }

    void add(
            const std::string& kind,
            int parts,
            int64_t q,
            double share,
            float radius,
            const RangeSearchResult& found,
            double ms) {
        const auto results = int64_t(found.lims[found.nq]);
        // Queries on the first device, results on the host.
        Row row = places_.row(
                "many_range", "faiss_bits", "flat", kind, parts, "device");
        row.text("metric", "L2")
                .integer("n", n_)
                .integer("d", shapes_.d)
                .integer("q", q)
                .number("selectivity", share)
                .number("radius", radius)
                .integer("results", results)
                .number("ms", ms);
        report_.add(row);
        std::printf(
                "%5.0fs %-8s %d on %d n=%lld q=%-5lld %8.4f%% %12lld results "
                "%10.3f ms\n",
                budget_.seconds(),
                kind.c_str(),
                parts,
                places_.devicesOf(parts),
                (long long)n_,
                (long long)q,
                100 * share,
                (long long)results,
                ms);
        std::fflush(stdout);
    }

    const Shapes& shapes_;
    Budget budget_;
    Report report_;
    ManyPlaces places_;
    SearchTimes times_;
    int64_t n_ = 0;
    int wrong_ = 0;
};

int runMain(int argc, char** argv) {
    Shapes shapes;
    // FAISS has no such search on GPUs
    return runBench<ManyRangeBench>(
            argc,
            argv,
            shapes,
            {numbersOption(
                     "--ns",
                     "vectors, in all shards (default: 2^20)",
                     shapes.ns),
             numberOption("--d", "dimensions", shapes.d),
             numbersOption("--qs", "queries a call", shapes.qs),
             {"--selectivities",
              "percent of all pairs in range (0.01,0.1,1)",
              [&](const std::string& v) {
                  shapes.shares = parseReals(v, 100);
              }}},
            {});
}

} // namespace
} // namespace faiss_bits::bench

int main(int argc, char** argv) {
    using namespace faiss_bits::bench;
    return runProgram(argc, argv, runMain);
}
