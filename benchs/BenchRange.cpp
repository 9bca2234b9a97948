/// Times range searches of GpuIndexBitsFlat, results on the device and on the
/// host, beside its own search for 10 neighbours; and those of inverted lists
/// and of the indexes for metric spaces. benchs/README.md says how.

#include <algorithm>
#include <cstdio>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <faiss/gpu/StandardGpuResources.h>
#include <faiss/impl/AuxIndexStructures.h>

#include "benchs/KeptRangeResult.h"
#include "benchs/RangeIndexes.h"
#include "benchs/common/DeviceData.h"
#include "benchs/common/Options.h"
#include "benchs/common/Report.h"
#include "benchs/common/Timing.h"
#include "faiss_bits/flat/GpuIndexBitsFlat.h"

namespace faiss_bits::bench {
namespace {

struct MetricKind {
    const char* name;
    faiss::MetricType type;
};

constexpr MetricKind kMetrics[] = {
        {"l2", faiss::METRIC_L2},
        {"ip", faiss::METRIC_INNER_PRODUCT},
        {"l1", faiss::METRIC_L1}};

/// What is to be timed.
struct Wanted {
    std::vector<int64_t> ns = {1 << 20};
    std::vector<int64_t> ds = {128};
    std::vector<int64_t> qs = {1, 1024, 10240};
    std::vector<double> shares = {0.0001, 0.001, 0.01};
    std::vector<std::string> metrics = {"l2", "ip"};
    std::vector<std::string> indexes = {"flat"};
    RangeIndexSettings settings;
    bool withHost = false;
};

/// The data of some cells.
struct Data {
    MetricKind metric;
    int64_t n;
    int d;
    std::vector<double> shares;
    std::vector<float> radii; // of the shares
    std::vector<double> knn;  // ms, of the numbers of queries
};

class RangeBench {
   public:
    RangeBench(const Options& options, const Wanted& wanted)
            : wanted_(wanted),
              budget_(options.maxSeconds),
              bandwidth_(measureReadBandwidth()),
              report_(options.out, collectMeta(options, bandwidth_)) {}

    void run(const MetricKind& metric, int64_t n, int d) {
        index_.reset();
        index_ = std::make_unique<gpu::GpuIndexBitsFlat>(
                &resources_, d, metric.type);
        vectors_ = DeviceArray<float>();
        vectors_ = filled(n, d, 1);
        index_->add(n, vectors_.data());
        const int64_t most =
                *std::max_element(wanted_.qs.begin(), wanted_.qs.end());
        queries_ = DeviceArray<float>();
        queries_ = filled(std::max<int64_t>(most, kMadeByQueries), d, 2);
        Data data{metric, n, d, wanted_.shares, {}, {}};
        for (const double share : wanted_.shares) {
            data.radii.push_back(radiusFor(n, share));
        }
        for (const int64_t q : wanted_.qs) {
            data.knn.push_back(knnTime(q));
        }
        for (const std::string& name : wanted_.indexes) {
            runIndex(data, name);
        }
    }

   private:
    static constexpr int64_t kSample = 64;

    static DeviceArray<float> filled(int64_t rows, int d, int seed) {
        DeviceArray<float> data(rows * d);
        fillKeys(data.data(), DataType::Float32, rows, d, Order::Random, seed);
        return data;
    }

    /// That such a part of the vectors are within, of the median one of some
    /// queries: on average over queries it is more.
    float radiusFor(int64_t n, double share) {
        const int64_t k = std::max<int64_t>(1, std::llround(share * double(n)));
        const DeviceArray<float> distances(kSample * k);
        const DeviceArray<idx_t> labels(kSample * k);
        index_->search(
                kSample, queries_.data(), k, distances.data(), labels.data());
        BITS_CUDA_CHECK(
                cudaDeviceSynchronize()); // it was on the index's stream
        std::vector<float> last(kSample);
        for (int64_t i = 0; i < kSample; ++i) {
            BITS_CUDA_CHECK(cudaMemcpy(
                    &last[i],
                    distances.data() + i * k + k - 1,
                    sizeof(float),
                    cudaMemcpyDeviceToHost));
        }
        std::nth_element(last.begin(), last.begin() + kSample / 2, last.end());
        return last[kSample / 2];
    }

    Measured timed(const std::function<void()>& call) {
        TimingMode mode;
        mode.wallClock = true;
        mode.before = [&] { flush_.enqueue(); };
        return timeCall([&](int) { call(); }, mode);
    }

    double knnTime(int64_t q) {
        constexpr int k = 10;
        const DeviceArray<float> distances(q * k);
        const DeviceArray<idx_t> labels(q * k);
        const auto search = [&] {
            index_->search(
                    q, queries_.data(), k, distances.data(), labels.data());
        };
        for (int i = 0; i < 6; ++i) {
            search(); // so that what an index keeps is there
        }
        return timed(search).ms;
    }

    void runIndex(const Data& data, const std::string& name) {
        const RangeIndex entry = makeRangeIndex(
                name,
                {data.metric.type,
                 data.n,
                 data.d,
                 vectors_.data(),
                 queries_.data(),
                 data.radii[0]},
                wanted_.settings,
                resources_);
        for (size_t s = 0; s < data.shares.size(); ++s) {
            for (size_t i = 0; i < wanted_.qs.size(); ++i) {
                if (budget_.isSpent()) {
                    std::printf("--max-seconds is spent\n");
                    return;
                }
                runCell(data, entry, wanted_.qs[i], s, data.knn[i]);
            }
        }
    }

    void runCell(
            const Data& data,
            const RangeIndex& entry,
            int64_t q,
            size_t share,
            double knn) {
        const float radius = data.radii[share];
        const auto onDevice = [&] {
            result_.reset();
            entry.search(q, radius, result_);
        };
        onDevice();
        const Measured time = timed(onDevice);
        const int64_t results = result_.lims.back();
        // Of each result its vector read, and 64 bytes moved.
        const double bound = knn +
                double(results) * (4.0 * data.d + 64) / (bandwidth_ * 1e6);
        const auto rowOf = [&](const char* method, double ms) {
            Row row;
            row.text("bench", "range")
                    .text("method", method)
                    .text("index", entry.name)
                    .text("metric", data.metric.name)
                    .integer("n", data.n)
                    .integer("d", data.d)
                    .integer("q", q)
                    .number("selectivity", data.shares[share])
                    .number("radius", radius)
                    .integer("results", results)
                    .number("ms", ms)
                    .number("knn_ms", knn)
                    .number("bound_ms", bound);
            if (entry.buildMs > 0) {
                row.number("build_ms", entry.buildMs);
            }
            if (!entry.settings.empty()) {
                row.text("settings", entry.settings);
            }
            report_.add(row);
            std::printf(
                    "%5.0fs %-16s %-16s %-3s n=%lld d=%-4d q=%-6lld %8.4f%% "
                    "%12lld results %10.4f ms, %5.2f of the bound (%.4f), "
                    "made in %.4g ms\n",
                    budget_.seconds(),
                    method,
                    entry.name.c_str(),
                    data.metric.name,
                    (long long)data.n,
                    data.d,
                    (long long)q,
                    100 * data.shares[share],
                    (long long)results,
                    ms,
                    ms / bound,
                    bound,
                    entry.buildMs);
            std::fflush(stdout);
        };
        rowOf("faiss_bits", time.ms);
        if (wanted_.withHost && entry.name == "flat") {
            const Measured host = timed([&] {
                faiss::RangeSearchResult result(q);
                index_->range_search(q, queries_.data(), radius, &result);
            });
            rowOf("faiss_bits_host", host.ms);
        }
    }

    const Wanted wanted_;
    Budget budget_;
    const double bandwidth_;
    Report report_;
    CacheFlush flush_;
    faiss::gpu::StandardGpuResources resources_;
    std::unique_ptr<gpu::GpuIndexBitsFlat> index_; // for radii, k-NN, the host
    DeviceArray<float> vectors_;
    DeviceArray<float> queries_;
    KeptResult result_;
};

int runMain(int argc, char** argv) {
    Wanted wanted;
    auto numbers = [](std::vector<int64_t>& list) {
        return [&list](const std::string& v) { list = parseNumbers(v); };
    };
    auto names = [](std::vector<std::string>& list) {
        return [&list](const std::string& v) { list = splitList(v); };
    };
    const Options options = parseOptions(
            argc,
            argv,
            {{"--ns", "vectors (default: 2^20)", numbers(wanted.ns)},
             {"--ds", "dimensions (128)", numbers(wanted.ds)},
             {"--qs", "queries a call (1,1024,10240)", numbers(wanted.qs)},
             {"--selectivities",
              "percent of all pairs in range (0.01,0.1,1)",
              [&](const std::string& v) {
                  wanted.shares = parseReals(v, 100);
              }},
             {"--metrics", "of l2,ip,l1 (l2,ip)", names(wanted.metrics)},
             {"--indexes",
              "of flat,brute_force,ivf_flat,list_of_clusters,sss (flat)",
              names(wanted.indexes)},
             {"--bucket-size",
              "of list_of_clusters (64, or as many as make 5,000 clusters)",
              [&](const std::string& v) {
                  wanted.settings.bucketSize = int(parseNumbers(v).at(0));
              }},
             {"--nlist",
              "of ivf_flat (1024)",
              [&](const std::string& v) {
                  wanted.settings.nlist = int(parseNumbers(v).at(0));
              }},
             {"--nprobe",
              "of ivf_flat (32)",
              [&](const std::string& v) {
                  wanted.settings.nprobe = int(parseNumbers(v).at(0));
              }},
             {"--host",
              "1: results on the host too",
              [&](const std::string& v) { wanted.withHost = v == "1"; }}});
    RangeBench bench(options, wanted);
    for (const MetricKind& kind : kMetrics) {
        if (std::find(
                    wanted.metrics.begin(), wanted.metrics.end(), kind.name) ==
            wanted.metrics.end()) {
            continue;
        }
        for (const int64_t n : wanted.ns) {
            for (const int64_t d : wanted.ds) {
                bench.run(kind, n, int(d));
            }
        }
    }
    return 0;
}

} // namespace
} // namespace faiss_bits::bench

int main(int argc, char** argv) {
    using namespace faiss_bits::bench;
    return runProgram(argc, argv, runMain);
}
