/// Times searches of vectors that several devices have, split or copied, beside
/// FAISS's IndexShards and IndexReplicas. benchs/README.md says how.

#include <algorithm>
#include <cstdio>
#include <map>
#include <memory>
#include <vector>

#include <faiss/gpu/StandardGpuResources.h>

#include "benchs/common/DeviceData.h"
#include "benchs/common/Labels.h"
#include "benchs/common/Options.h"
#include "benchs/common/Report.h"
#include "benchs/common/Timing.h"
#include "benchs/many/FaissMany.h"
#include "benchs/many/MergeTimes.h"
#include "faiss_bits/flat/GpuIndexBitsFlat.h"
#include "faiss_bits/many/GpuIndexBitsReplicas.h"
#include "faiss_bits/many/GpuIndexBitsShards.h"

namespace faiss_bits::bench {
namespace {

struct Shapes {
    std::vector<int64_t> ns = {1 << 20};
    int64_t d = 128;
    std::vector<int64_t> qs = {1, 1024, 10240};
    std::vector<int64_t> ks = {10, 100, 2000};
    std::vector<int64_t> parts = {1, 2, 3, 8};
    std::vector<std::string> kinds = {"shards", "replicas"};
    int64_t devices = 1;
    bool peers = true;
};

/// Results of one search.
struct Outputs {
    Outputs(int64_t q, int64_t k) : distances(q * k), labels(q * k) {}

    DeviceArray<float> distances;
    DeviceArray<idx_t> labels;
};

class ManyBench {
   public:
    ManyBench(const Options& options, const Shapes& shapes)
            : options_(options),
              shapes_(shapes),
              budget_(options.maxSeconds),
              report_(options.out,
                      collectMeta(options, measureReadBandwidth())) {
        const int64_t most =
                *std::max_element(shapes.parts.begin(), shapes.parts.end());
        for (int64_t i = 0; i < most; ++i) {
            resources_.push_back(
                    std::make_unique<faiss::gpu::StandardGpuResources>());
            resources_.back()->setTempMemory(size_t(1) << 30);
        }
        const int64_t mostQueries =
                *std::max_element(shapes.qs.begin(), shapes.qs.end());
        queries_ = DeviceArray<float>(mostQueries * shapes.d);
        fill(queries_.data(), mostQueries, 2);
        hostQueries_ = download(queries_);
    }

    void run() {
        for (int64_t n : shapes_.ns) {
            n_ = n;
            vectors_ = DeviceArray<float>(n * shapes_.d);
            fill(vectors_.data(), n, 1);
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
        std::printf(
                "%zu rows in %s, %.0f s, %d wrong\n",
                report_.size(),
                options_.out.c_str(),
                budget_.seconds(),
                wrong_);
    }

    bool isRight() const {
        return wrong_ == 0;
    }

   private:
    void fill(float* to, int64_t rows, int seed) const {
        fillKeys(to, DataType::Float32, rows, shapes_.d, Order::Random, seed);
    }

    static std::vector<float> download(const DeviceArray<float>& array) {
        std::vector<float> host(array.size());
        BITS_CUDA_CHECK(cudaMemcpy(
                host.data(),
                array.data(),
                host.size() * sizeof(float),
                cudaMemcpyDeviceToHost));
        return host;
    }

    gpu::DeviceList places(int parts) const {
        gpu::DeviceList list;
        for (int part = 0; part < parts; ++part) {
            list.add(
                    resources_[part].get(),
                    int(part % std::min<int64_t>(parts, shapes_.devices)));
        }
        return list;
    }

    template <class Call>
    void forEachCell(const std::string& what, const Call& call) {
        for (int64_t q : shapes_.qs) {
            for (int64_t k : shapes_.ks) {
                if (budget_.isSpent()) {
                    std::printf(
                            "--max-seconds is spent: %s left out\n",
                            what.c_str());
                    return;
                }
                call(q, k);
            }
        }
    }

    /// Arrays on the first device.
    double timeOnDevice(
            const faiss::Index& index,
            int64_t q,
            int64_t k,
            const Outputs& out) {
        TimingMode mode;
        mode.wallClock = true;
        mode.before = [&] { flush_.enqueue(); };
        return timeCall(
                       [&](int) {
                           index.search(
                                   q,
                                   queries_.data(),
                                   k,
                                   out.distances.data(),
                                   out.labels.data());
                       },
                       mode)
                .ms;
    }

    /// Arrays on the host, as FAISS's IndexShards needs them.
    double timeOnHost(const faiss::Index& index, int64_t q, int64_t k) {
        hostDistances_.resize(q * k);
        hostLabels_.resize(q * k);
        TimingMode mode;
        mode.wallClock = true;
        mode.before = [&] { flush_.enqueue(); };
        mode.leastRepeats = 3;
        return timeCall(
                       [&](int) {
                           index.search(
                                   q,
                                   hostQueries_.data(),
                                   k,
                                   hostDistances_.data(),
                                   hostLabels_.data());
                       },
                       mode)
                .ms;
    }

    void add(
            const char* method,
            const std::string& kind,
            int parts,
            int64_t q,
            int64_t k,
            const char* arrays,
            double ms,
            double mergeMs = -1) {
        const int64_t devices = std::min<int64_t>(parts, shapes_.devices);
        Row row;
        row.text("bench", "many")
                .text("method", method)
                .text("index", "flat")
                .text("kind", kind)
                .integer("shards", parts)
                .integer("devices", devices)
                .integer("peers", devices > 1 && shapes_.peers)
                .text("arrays", arrays)
                .integer("n", n_)
                .integer("d", shapes_.d)
                .integer("q", q)
                .integer("k", k)
                .number("ms", ms);
        if (mergeMs >= 0) {
            row.number("merge_ms", mergeMs);
        }
        report_.add(row);
        std::printf(
                "%5.0fs %-15s %-8s %d on %lld n=%-8lld q=%-5lld k=%-4lld %-6s "
                "%9.3f ms, merge %8.4f ms\n",
                budget_.seconds(),
                method,
                kind.c_str(),
                parts,
                (long long)devices,
                (long long)n_,
                (long long)q,
                (long long)k,
                arrays,
                ms,
                mergeMs);
        std::fflush(stdout);
    }

    void runOne() {
        gpu::GpuIndexBitsFlat index(
                resources_[0].get(), int(shapes_.d), faiss::METRIC_L2);
        index.add(n_, vectors_.data());
        wanted_.clear();
        forEachCell("one index", [&](int64_t q, int64_t k) {
            const Outputs out(q, k);
            const double ms = timeOnDevice(index, q, k, out);
            wanted_[{q, k}] = firstLabels(out, q, k);
            const double hostMs = timeOnHost(index, q, k);
            for (const std::string& kind : shapes_.kinds) {
                add("faiss_bits", kind, 1, q, k, "device", ms, 0);
                add("faiss_bits", kind, 1, q, k, "host", hostMs);
            }
        });
    }

    static std::vector<idx_t> firstLabels(
            const Outputs& out,
            int64_t q,
            int64_t k) {
        return downloadLabels(out.labels, std::min<int64_t>(q, 256) * k);
    }

    void check(
            const std::string& what,
            const Outputs& out,
            int64_t q,
            int64_t k) {
        const auto wanted = wanted_.find({q, k});
        if (wanted != wanted_.end() &&
            firstLabels(out, q, k) != wanted->second) {
            std::printf(
                    "WRONG: %s q=%lld k=%lld\n",
                    what.c_str(),
                    (long long)q,
                    (long long)k);
            ++wrong_;
        }
    }

    void runOurs(const std::string& kind, int parts) {
        gpu::GpuIndexBitsManyConfig config;
        config.usePeerAccess = shapes_.peers;
        std::unique_ptr<faiss::Index> index;
        const gpu::GpuIndexBitsShards* shards = nullptr;
        if (kind == "shards") {
            auto made = std::make_unique<gpu::GpuIndexBitsShards>(
                    places(parts), int(shapes_.d), faiss::METRIC_L2, config);
            shards = made.get();
            index = std::move(made);
        } else {
            index = std::make_unique<gpu::GpuIndexBitsReplicas>(
                    places(parts), int(shapes_.d), faiss::METRIC_L2, config);
        }
        index->add(n_, vectors_.data());
        forEachCell(kind, [&](int64_t q, int64_t k) {
            const Outputs out(q, k);
            const double ms = timeOnDevice(*index, q, k, out);
            check(kind, out, q, k);
            double mergeMs = -1;
            if (shards && shapes_.devices == 1) {
                mergeMs = timeMerge(
                        *shards,
                        queries_.data(),
                        q,
                        k,
                        out.distances.data(),
                        out.labels.data(),
                        [&] { flush_.enqueue(); });
                check("merge", out, q, k);
            } else if (shards) {
                mergeMs = ms -
                        timeLongestSearch(
                                  *shards,
                                  queries_.data(),
                                  q,
                                  k,
                                  int(shapes_.devices));
            }
            add("faiss_bits", kind, parts, q, k, "device", ms, mergeMs);
            add("faiss_bits",
                kind,
                parts,
                q,
                k,
                "host",
                timeOnHost(*index, q, k));
            if (options_.wants("faiss_over_ours")) {
                const FaissMany faiss = faissOverParts(*index);
                add("faiss_over_ours",
                    kind,
                    parts,
                    q,
                    k,
                    "host",
                    timeOnHost(*faiss.index, q, k));
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
                places(parts),
                resources_,
                int(shapes_.d),
                host.data(),
                n_);
        forEachCell("FAISS's " + kind, [&](int64_t q, int64_t k) {
            const double ms = timeOnHost(*faiss.index, q, k);
            add("faiss", kind, parts, q, k, "host", ms);
        });
    }

    const Options& options_;
    const Shapes& shapes_;
    Budget budget_;
    Report report_;
    CacheFlush flush_;
    std::vector<std::unique_ptr<faiss::gpu::StandardGpuResources>> resources_;
    int64_t n_ = 0;
    DeviceArray<float> vectors_;
    DeviceArray<float> queries_;
    std::vector<float> hostQueries_;
    std::vector<float> hostDistances_;
    std::vector<idx_t> hostLabels_;
    /// Labels of one index, by q and k.
    std::map<std::pair<int64_t, int64_t>, std::vector<idx_t>> wanted_;
    int wrong_ = 0;
};

int runMain(int argc, char** argv) {
    Shapes shapes;
    const auto numbers = [](std::vector<int64_t>& list) {
        return [&list](const std::string& v) { list = parseNumbers(v); };
    };
    const auto number = [](int64_t& value) {
        return [&value](const std::string& v) {
            value = parseNumbers(v).front();
        };
    };
    const Options options = parseOptions(
            argc,
            argv,
            {{"--ns",
              "vectors, in all shards (default: 2^20)",
              numbers(shapes.ns)},
             {"--d", "dimensions", number(shapes.d)},
             {"--qs", "queries a call", numbers(shapes.qs)},
             {"--ks", "neighbours", numbers(shapes.ks)},
             {"--parts",
              "shards or replicas; 1: one index",
              numbers(shapes.parts)},
             {"--devices", "parts lie on them in turn", number(shapes.devices)},
             {"--kinds",
              "of shards,replicas",
              [&](const std::string& v) { shapes.kinds = splitList(v); }},
             {"--peers",
              "yes, or no: copies through the host",
              [&](const std::string& v) { shapes.peers = v != "no"; }}});
    options.requireRivals({"faiss", "faiss_over_ours"});
    ManyBench bench(options, shapes);
    bench.run();
    return bench.isRight() ? 0 : 1;
}

} // namespace
} // namespace faiss_bits::bench

int main(int argc, char** argv) {
    using namespace faiss_bits::bench;
    return runProgram(argc, argv, runMain);
}
