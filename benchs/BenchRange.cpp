/// Times range searches of GpuIndexBitsFlat, results on the device and on the
/// host, beside its own search for 10 neighbours. benchs/README.md says how.

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <memory>
#include <vector>

#include <faiss/gpu/StandardGpuResources.h>
#include <faiss/impl/AuxIndexStructures.h>

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

/// Memory that is there before the call, as a caching allocator has it.
class KeptResult : public gpu::GpuRangeResult {
   public:
    Part allocate(idx_t size) override {
        wanted_ += size;
        if (used_ + size > idx_t(distances_.size())) {
            return GpuRangeResult::allocate(size);
        }
        Part part;
        part.size = size;
        part.distances = distances_.data() + used_;
        part.labels = labels_.data() + used_;
        used_ += size;
        return part;
    }

    /// Before a call.
    void reset() {
        if (wanted_ > idx_t(distances_.size())) {
            distances_ = DeviceArray<float>();
            labels_ = DeviceArray<idx_t>();
            distances_ = DeviceArray<float>(size_t(wanted_));
            labels_ = DeviceArray<idx_t>(size_t(wanted_));
        }
        used_ = wanted_ = 0;
    }

   private:
    DeviceArray<float> distances_;
    DeviceArray<idx_t> labels_;
    idx_t used_ = 0;
    idx_t wanted_ = 0;
};

class RangeBench {
   public:
    RangeBench(const Options& options, bool withHost)
            : options_(options),
              withHost_(withHost),
              budget_(options.maxSeconds),
              bandwidth_(measureReadBandwidth()),
              report_(options.out, collectMeta(options, bandwidth_)) {}

    void run(
            const MetricKind& metric,
            int64_t n,
            int d,
            const std::vector<int64_t>& qs,
            const std::vector<double>& shares) {
        index_.reset();
        index_ = std::make_unique<gpu::GpuIndexBitsFlat>(
                &resources_, d, metric.type);
        index_->add(n, filled(n, d, 1).data());
        const int64_t most = *std::max_element(qs.begin(), qs.end());
        queries_ = DeviceArray<float>();
        queries_ = filled(std::max<int64_t>(most, kSample), d, 2);
        for (const double share : shares) {
            const float radius = radiusFor(n, share);
            for (const int64_t q : qs) {
                if (budget_.isSpent()) {
                    std::printf("--max-seconds is spent\n");
                    return;
                }
                runCell(metric, n, d, q, share, radius);
            }
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

    void runCell(
            const MetricKind& metric,
            int64_t n,
            int d,
            int64_t q,
            double share,
            float radius) {
        const double knn = knnTime(q);
        const auto onDevice = [&] {
            result_.reset();
            index_->rangeSearchOnDevice(q, queries_.data(), radius, result_);
        };
        onDevice();
        const Measured time = timed(onDevice);
        const int64_t results = result_.lims.back();
        // Of each result its vector read, and 64 bytes moved.
        const double bound =
                knn + double(results) * (4.0 * d + 64) / (bandwidth_ * 1e6);
        const auto rowOf = [&](const char* method, double ms) {
            Row row;
            row.text("bench", "range")
                    .text("method", method)
                    .text("index", "flat")
                    .text("metric", metric.name)
                    .integer("n", n)
                    .integer("d", d)
                    .integer("q", q)
                    .number("selectivity", share)
                    .number("radius", radius)
                    .integer("results", results)
                    .number("ms", ms)
                    .number("knn_ms", knn)
                    .number("bound_ms", bound);
            report_.add(row);
            std::printf(
                    "%5.0fs %-16s %-3s n=%lld d=%-4d q=%-6lld %8.4f%% "
                    "%12lld results %10.4f ms, %5.2f of the bound (%.4f)\n",
                    budget_.seconds(),
                    method,
                    metric.name,
                    (long long)n,
                    d,
                    (long long)q,
                    100 * share,
                    (long long)results,
                    ms,
                    ms / bound,
                    bound);
            std::fflush(stdout);
        };
        rowOf("faiss_bits", time.ms);
        if (withHost_) {
            const Measured host = timed([&] {
                faiss::RangeSearchResult result(q);
                index_->range_search(q, queries_.data(), radius, &result);
            });
            rowOf("faiss_bits_host", host.ms);
        }
    }

    const Options& options_;
    const bool withHost_;
    Budget budget_;
    const double bandwidth_;
    Report report_;
    CacheFlush flush_;
    faiss::gpu::StandardGpuResources resources_;
    std::unique_ptr<gpu::GpuIndexBitsFlat> index_;
    DeviceArray<float> queries_;
    KeptResult result_;
};

std::vector<double> parseShares(const std::string& list) {
    std::vector<double> shares;
    for (const std::string& one : splitList(list)) {
        shares.push_back(std::atof(one.c_str()) / 100);
    }
    return shares;
}

int runMain(int argc, char** argv) {
    std::vector<int64_t> ns = {1 << 20};
    std::vector<int64_t> ds = {128};
    std::vector<int64_t> qs = {1, 1024, 10240};
    std::vector<double> shares = {0.0001, 0.001, 0.01};
    std::vector<std::string> metrics = {"l2", "ip"};
    bool withHost = false;
    auto numbers = [](std::vector<int64_t>& list) {
        return [&list](const std::string& v) { list = parseNumbers(v); };
    };
    const Options options = parseOptions(
            argc,
            argv,
            {{"--ns", "vectors (default: 2^20)", numbers(ns)},
             {"--ds", "dimensions (128)", numbers(ds)},
             {"--qs", "queries a call (1,1024,10240)", numbers(qs)},
             {"--selectivities",
              "percent of all pairs in range (0.01,0.1,1)",
              [&](const std::string& v) { shares = parseShares(v); }},
             {"--metrics",
              "of l2,ip,l1 (l2,ip)",
              [&](const std::string& v) { metrics = splitList(v); }},
             {"--host",
              "1: results on the host too",
              [&](const std::string& v) { withHost = v == "1"; }}});
    RangeBench bench(options, withHost);
    for (const MetricKind& kind : kMetrics) {
        if (std::find(metrics.begin(), metrics.end(), kind.name) ==
            metrics.end()) {
            continue;
        }
        for (const int64_t n : ns) {
            for (const int64_t d : ds) {
                bench.run(kind, n, int(d), qs, shares);
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
