/// Times inverted lists that several devices have, dealt out or copied, beside
/// one device's and FAISS's. benchs/README.md says how.

#include <algorithm>
#include <cstdio>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include <faiss/IndexIVFFlat.h>

#include "benchs/common/DeviceData.h"
#include "benchs/common/Labels.h"
#include "benchs/common/Options.h"
#include "benchs/common/Report.h"
#include "benchs/common/Timing.h"
#include "benchs/many/FaissMany.h"
#include "benchs/many/ManyPlaces.h"
#include "benchs/many/SearchTimes.h"
#include "faiss_bits/cloners/GpuBitsMultipleCloner.h"
#include "faiss_bits/ivf/GpuIndexBitsIVFFlat.h"

namespace faiss_bits::bench {
namespace {

struct Shapes : ManySettings {
    std::vector<int64_t> ns = {1 << 20};
    int64_t d = 128;
    int64_t nlist = 1024;
    int64_t nprobe = 32;
    std::vector<int64_t> qs = {1, 1024, 10240};
    std::vector<int64_t> ks = {10, 100};
};

class ManyIvfBench {
   public:
    ManyIvfBench(const Options& options, const Shapes& shapes)
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
        for (const int64_t n : shapes_.ns) {
            if (budget_.isSpent()) {
                std::printf(
                        "--max-seconds is spent: n = %lld left out\n",
                        (long long)n);
                continue;
            }
            n_ = n;
            fillLists();
            runOne();
            for (const std::string& kind : shapes_.kinds) {
                for (const int64_t parts : shapes_.parts) {
                    if (parts > 1) {
                        runMany(kind, int(parts));
                    }
                }
            }
            lists_.reset();
        }
        return finishBench(report_, budget_, wrong_);
    }

   private:
    /// One index of ours, and its lists on the CPU for all others.
    void fillLists() {
        const auto vectors = randomVectors(n_, shapes_.d, 1);
        const auto host = download(vectors);
        one_ = std::make_unique<gpu::GpuIndexBitsIVFFlat>(
                places_.first(),
                int(shapes_.d),
                int(shapes_.nlist),
                faiss::METRIC_L2);
        one_->train(n_, host.data());
        one_->add(n_, vectors.data());
        lists_ = std::make_unique<faiss::IndexIVFFlat>();
        one_->copyTo(lists_.get());
        lists_->nprobe = size_t(shapes_.nprobe);
        // Copied again, as lists that grew have room to spare.
        one_.reset();
        one_ = std::make_unique<gpu::GpuIndexBitsIVFFlat>(
                places_.first(), lists_.get());
        std::printf(
                "%5.0fs n=%lld in %lld lists\n",
                budget_.seconds(),
                (long long)n_,
                (long long)shapes_.nlist);
    }

    /// agreement: labels that one index of ours has too, as a share; shareMs:
    /// of InTurns.
    void add(
            const char* method,
            const std::string& kind,
            int parts,
            int64_t q,
            int64_t k,
            const char* arrays,
            double ms,
            double agreement = -1,
            double shareMs = 0) {
        Row row = places_.row(
                "many_ivf", method, "ivf_flat", kind, parts, arrays);
        row.integer("n", n_)
                .integer("d", shapes_.d)
                .integer("nlist", shapes_.nlist)
                .integer("nprobe", shapes_.nprobe)
                .integer("q", q)
                .integer("k", k)
                .number("ms", ms);
        if (agreement >= 0) {
            row.number("agreement", agreement);
        }
        if (shareMs > 0) {
            row.number("share_ms", shareMs);
        }
        report_.add(row);
        std::printf(
                "%5.0fs %-15s %-8s %d on %d n=%-8lld q=%-5lld k=%-4lld %-6s "
                "%9.3f ms\n",
                budget_.seconds(),
                method,
                kind.c_str(),
                parts,
                places_.devicesOf(parts),
                (long long)n_,
                (long long)q,
                (long long)k,
                arrays,
                ms);
        std::fflush(stdout);
    }

    void runOne() {
        wanted_.clear();
        forEachCell(shapes_, budget_, "one index", [&](int64_t q, int64_t k) {
            const Outputs out(q, k);
            const double ms = times_.onDevice(*one_, q, k, out);
            wanted_[{q, k}] = out.download();
            const double hostMs = times_.onHost(*one_, q, k);
            check("one", times_.ofHost, q, k);
            for (const std::string& kind : shapes_.kinds) {
                add("faiss_bits", kind, 1, q, k, "device", ms);
                add("faiss_bits", kind, 1, q, k, "host", hostMs);
            }
        });
        one_.reset();
        runFaiss(shapes_.kinds, 1);
    }

    void runMany(const std::string& kind, int parts) {
        faiss::gpu::GpuMultipleClonerOptions options;
        options.shard = kind == "shards";
        std::unique_ptr<faiss::Index> index(gpu::index_cpu_to_gpu_multiple(
                places_.list(parts), lists_.get(), &options, places_.config()));
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
            add("faiss_bits",
                kind,
                parts,
                q,
                k,
                "device",
                ms,
                -1,
                times.shareMs);
            std::vector<const faiss::Index*> onHost = {index.get()};
            if (over) {
                onHost.insert(onHost.begin(), over->index.get());
            }
            const auto hostMs = times_.onHostInTurns(onHost, q, k);
            check(kind + " of the host", times_.ofHost, q, k);
            add("faiss_bits", kind, parts, q, k, "host", hostMs.back());
            if (over) {
                times_.searchOnHost(*over->index, q, k);
                add("faiss_over_ours",
                    kind,
                    parts,
                    q,
                    k,
                    "host",
                    hostMs.front(),
                    agreement(q, k));
            }
        });
        over.reset();
        index.reset();
        runFaiss({kind}, parts);
    }

    /// FAISS's lists in its own container, or alone.
    void runFaiss(const std::vector<std::string>& kinds, int parts) {
        if (!options_.wants("faiss")) {
            return;
        }
        const FaissMany faiss = faissOverLists(
                kinds.front() == "shards",
                places_.list(parts),
                places_.resources(),
                *lists_);
        forEachCell(
                shapes_,
                budget_,
                "FAISS's " + kinds.front(),
                [&](int64_t q, int64_t k) {
                    const double ms = times_.onHost(*faiss.index, q, k);
                    const double both = agreement(q, k);
                    for (const std::string& kind : kinds) {
                        add("faiss", kind, parts, q, k, "host", ms, both);
                    }
                });
    }

    /// Of the last search with arrays on the host.
    double agreement(int64_t q, int64_t k) const {
        const auto wanted = wanted_.find({q, k});
        return wanted == wanted_.end()
                ? -1
                : shareInBoth(
                          wanted->second.labels, times_.ofHost.labels, int(k));
    }

    /// All answers of a cell are those of one index, bit for bit.
    void check(
            const std::string& what,
            const Answers& got,
            int64_t q,
            int64_t k) {
        const auto wanted = wanted_.find({q, k});
        if (wanted == wanted_.end()) {
            return; // --max-seconds was spent
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

    const Options& options_;
    const Shapes& shapes_;
    Budget budget_;
    Report report_;
    ManyPlaces places_;
    SearchTimes times_;
    int64_t n_ = 0;
    std::unique_ptr<gpu::GpuIndexBitsIVFFlat> one_;
    std::unique_ptr<faiss::IndexIVFFlat> lists_;
    /// Answers of one index, by q and k.
    std::map<std::pair<int64_t, int64_t>, Answers> wanted_;
    int wrong_ = 0;
};

int runMain(int argc, char** argv) {
    Shapes shapes;
    return runBench<ManyIvfBench>(
            argc,
            argv,
            shapes,
            {numbersOption(
                     "--ns",
                     "vectors, in all shards (default: 2^20)",
                     shapes.ns),
             numberOption("--d", "dimensions", shapes.d),
             numberOption("--nlist", "lists (1024)", shapes.nlist),
             numberOption("--nprobe", "lists of a query (32)", shapes.nprobe),
             numbersOption("--qs", "queries a call", shapes.qs),
             numbersOption("--ks", "neighbours (10,100)", shapes.ks)},
            {"faiss", "faiss_over_ours"});
}

} // namespace
} // namespace faiss_bits::bench

int main(int argc, char** argv) {
    using namespace faiss_bits::bench;
    return runProgram(argc, argv, runMain);
}
