/// Times searches of vectors that several devices have, split or copied, beside
/// FAISS's IndexShards and IndexReplicas. benchs/README.md says how.

#include <algorithm>
#include <cstdio>
#include <map>
#include <optional>
#include <vector>

#include "benchs/common/DeviceData.h"
#include "benchs/common/Options.h"
#include "benchs/common/Report.h"
#include "benchs/common/Timing.h"
#include "benchs/many/FaissMany.h"
#include "benchs/many/ManyPlaces.h"
#include "benchs/many/MergeTimes.h"
#include "benchs/many/SearchTimes.h"
#include "faiss_bits/many/GpuIndexBitsShards.h"

namespace faiss_bits::bench {
namespace {

struct Shapes : ManySettings {
    std::vector<int64_t> ns = {1 << 20};
    int64_t d = 128;
    std::vector<int64_t> qs = {1, 1024, 10240};
    std::vector<int64_t> ks = {10, 100, 2000};
};

class ManyBench {
   public:
    ManyBench(const Options& options, const Shapes& shapes)
            : options_(options),
              shapes_(shapes),
              budget_(options.maxSeconds),
              report_(options.out,
                      collectMeta(options, measureReadBandwidth())),
              places_(shapes),
              times_(*std::max_element(shapes.qs.begin(), shapes.qs.end()),
                     shapes.d,
                     shapes.devices) {}

    int run() {
        for (int64_t n : shapes_.ns) {
            n_ = n;
            vectors_ = randomVectors(n, shapes_.d, 1);
            for (const std::string& kind : shapes_.kinds) {
                for (int64_t parts : shapes_.parts) {
                    if (parts > 1) {
                        runOurs(kind, int(parts));
                        runFaiss(kind, int(parts));
                    } else if (kind == shapes_.kinds.front()) {
                        runOne();
                    }
                }
            }
            vectors_ = DeviceArray<float>();
        }
        return finishBench(report_, budget_, wrong_);
    }

   private:
    void add(
            const char* method,
            const std::string& kind,
            int parts,
            int64_t q,
            int64_t k,
            const char* arrays,
            double ms,
            double mergeMs = -1,
            double shareMs = 0) {
        Row row = places_.row("many", method, "flat", kind, parts, arrays);
        row.integer("n", n_)
                .integer("d", shapes_.d)
                .integer("q", q)
                .integer("k", k)
                .number("ms", ms);
        if (mergeMs >= 0) {
            row.number("merge_ms", mergeMs);
        }
        if (shareMs > 0) {
            row.number("share_ms", shareMs);
        }
        report_.add(row);
        std::printf(
                "%5.0fs %-15s %-8s %d on %d n=%-8lld q=%-5lld k=%-4lld %-6s "
                "%9.3f ms, merge %8.4f ms\n",
                budget_.seconds(),
                method,
                kind.c_str(),
                parts,
                places_.devicesOf(parts),
                (long long)n_,
                (long long)q,
                (long long)k,
                arrays,
                ms,
                mergeMs);
        std::fflush(stdout);
    }

    void runOne() {
        const auto index = places_.ours("", 1, shapes_.d);
        index->add(n_, vectors_.data());
        wanted_.clear();
        forEachCell(shapes_, budget_, "one index", [&](int64_t q, int64_t k) {
            const Outputs out(q, k);
            const double ms = times_.onDevice(*index, q, k, out);
            wanted_[{q, k}] = out.download();
            const double hostMs = times_.onHost(*index, q, k);
            check("arrays on the host", times_.ofHost, q, k);
            for (const std::string& kind : shapes_.kinds) {
                add("faiss_bits", kind, 1, q, k, "device", ms, 0);
                add("faiss_bits", kind, 1, q, k, "host", hostMs);
            }
        });
    }

    /// All answers of a cell are those of one index, bit for bit.
    void check(
            const std::string& what,
            const Answers& got,
            int64_t q,
            int64_t k) {
        const auto wanted = wanted_.find({q, k});
        if (wanted == wanted_.end()) {
            return;
        }
        if (const int64_t wrong = wrongQueries(got, wanted->second, k)) {
            std::printf(
                    "WRONG: %s q=%lld k=%lld: %lld queries\n",
                    what.c_str(),
                    (long long)q,
                    (long long)k,
                    (long long)wrong);
            ++wrong_;
        }
    }

    void runOurs(const std::string& kind, int parts) {
        const auto index = places_.ours(kind, parts, shapes_.d);
        const auto* shards =
                dynamic_cast<const gpu::GpuIndexBitsShards*>(index.get());
        index->add(n_, vectors_.data());
        std::optional<FaissMany> over;
        if (options_.wants("faiss_over_ours")) {
            over = faissOverParts(*index);
        }
        forEachCell(shapes_, budget_, kind, [&](int64_t q, int64_t k) {
            const Outputs out(q, k);
            const SearchTimes::InTurns times = times_.onDeviceInTurns(
                    *index, parts, places_.devicesOf(parts), q, k, out);
            const double ms = times.ms;
            check(kind, out.download(), q, k);
            double mergeMs = -1;
            if (shards && shapes_.devices == 1) {
                mergeMs = timeMerge(
                        *shards,
                        times_.queries(),
                        q,
                        k,
                        out.distances.data(),
                        out.labels.data(),
                        [&] { times_.flush(); });
                check("merge", out.download(), q, k);
            } else if (shards) {
                mergeMs = ms -
                        timeLongestSearch(
                                  *shards,
                                  times_.queries(),
                                  q,
                                  k,
                                  int(shapes_.devices));
            }
            add("faiss_bits",
                kind,
                parts,
                q,
                k,
                "device",
                ms,
                mergeMs,
                times.shareMs);
            std::vector<const faiss::Index*> onHost = {index.get()};
            if (over) {
                onHost.insert(onHost.begin(), over->index.get());
            }
            const auto hostMs = times_.onHostInTurns(onHost, q, k);
            check(kind + " of the host", times_.ofHost, q, k);
            add("faiss_bits", kind, parts, q, k, "host", hostMs.back());
            if (over) {
                add("faiss_over_ours",
                    kind,
                    parts,
                    q,
                    k,
                    "host",
                    hostMs.front());
            }
        });
    }

    /// FAISS's container over FAISS's GpuIndexFlat.
    void runFaiss(const std::string& kind, int parts) {
        if (!options_.wants("faiss")) {
            return;
        }
        const auto host = download(vectors_);
        const FaissMany faiss = faissOverFlat(
                kind == "shards",
                places_.list(parts),
                places_.resources(),
                int(shapes_.d),
                host.data(),
                n_);
        forEachCell(
                shapes_, budget_, "FAISS's " + kind, [&](int64_t q, int64_t k) {
                    const double ms = times_.onHost(*faiss.index, q, k);
                    add("faiss", kind, parts, q, k, "host", ms);
                });
    }

    const Options& options_;
    const Shapes& shapes_;
    Budget budget_;
    Report report_;
    ManyPlaces places_;
    SearchTimes times_;
    int64_t n_ = 0;
    DeviceArray<float> vectors_;
    /// Answers of one index, by q and k.
    std::map<std::pair<int64_t, int64_t>, Answers> wanted_;
    int wrong_ = 0;
};

int runMain(int argc, char** argv) {
    Shapes shapes;
    shapes.parts = {1, 2, 3, 8};
    return runBench<ManyBench>(
            argc,
            argv,
            shapes,
            {numbersOption(
                     "--ns",
                     "vectors, in all shards (default: 2^20)",
                     shapes.ns),
             numberOption("--d", "dimensions", shapes.d),
             numbersOption("--qs", "queries a call", shapes.qs),
             numbersOption("--ks", "neighbours", shapes.ks)},
            {"faiss", "faiss_over_ours"});
}

} // namespace
} // namespace faiss_bits::bench

int main(int argc, char** argv) {
    using namespace faiss_bits::bench;
    return runProgram(argc, argv, runMain);
}
