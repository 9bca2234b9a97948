/// Times GpuIndexBitsFlat against GpuIndexFlat by the metrics beyond L2 and
/// inner product. benchs/README.md says how.

#include <algorithm>
#include <cstdio>
#include <memory>
#include <vector>

#include <faiss/gpu/GpuIndexFlat.h>
#include <faiss/gpu/StandardGpuResources.h>

#include "benchs/common/DeviceData.h"
#include "benchs/common/Labels.h"
#include "benchs/common/Options.h"
#include "benchs/common/Report.h"
#include "benchs/common/Timing.h"
#include "faiss_bits/flat/GpuIndexBitsFlat.h"

namespace faiss_bits::bench {
namespace {

struct MetricKind {
    const char* name;
    faiss::MetricType type;
    double p = 0; // of Lp, else 0
};

template <class Type>
std::vector<MetricKind> metricKinds() {
    std::vector<MetricKind> kinds = {
            {"L1", faiss::METRIC_L1},
            {"Linf", faiss::METRIC_Linf},
            {"Lp", faiss::METRIC_Lp, 0.5},
            {"Lp", faiss::METRIC_Lp, 3},
            {"Lp", faiss::METRIC_Lp, 2.5},
            {"Canberra", faiss::METRIC_Canberra},
            {"BrayCurtis", faiss::METRIC_BrayCurtis},
            {"JensenShannon", faiss::METRIC_JensenShannon}};
    // Since FAISS 1.7.4.
    if constexpr (requires { Type::METRIC_Jaccard; }) {
        kinds.push_back({"Jaccard", Type::METRIC_Jaccard});
    }
    return kinds;
}

struct Cell {
    MetricKind metric;
    int64_t n;
    int d;
    int64_t q;
    int k;
};

/// Cells that search the same vectors stand together.
bool sharesIndexes(const Cell& a, const Cell& b) {
    return a.n == b.n && a.d == b.d && a.metric.type == b.metric.type;
}

/// Both indexes over the same vectors, each with its own resources.
struct Indexes {
    faiss::gpu::StandardGpuResources ourResources;
    faiss::gpu::StandardGpuResources faissResources;
    std::unique_ptr<faiss::Index> ours;
    std::unique_ptr<faiss::Index> faiss;

    Indexes(const Cell& cell, const float* vectors, bool withRival) {
        ours = std::make_unique<gpu::GpuIndexBitsFlat>(
                &ourResources, cell.d, cell.metric.type);
        ours->add(cell.n, vectors);
        if (withRival) {
            faiss = std::make_unique<faiss::gpu::GpuIndexFlat>(
                    &faissResources, cell.d, cell.metric.type);
            faiss->add(cell.n, vectors);
        }
    }

    void setPower(double p) {
        for (faiss::Index* index : {ours.get(), faiss.get()}) {
            if (index) {
                index->metric_arg = float(p);
            }
        }
    }
};

class MetricsBench {
   public:
    explicit MetricsBench(const Options& options)
            : options_(options),
              budget_(options.maxSeconds),
              report_(options.out,
                      collectMeta(options, measureReadBandwidth())) {}

    void run(const std::vector<Cell>& cells) {
        for (size_t i = 0; i < cells.size(); ++i) {
            if (budget_.isSpent()) {
                std::printf(
                        "--max-seconds is spent: %zu of %zu cells left out\n",
                        cells.size() - i,
                        cells.size());
                break;
            }
            if (i == 0 || !sharesIndexes(cells[i - 1], cells[i])) {
                prepare(cells, i);
            }
            runCell(cells[i]);
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
    /// Vectors and queries in (0, 1]: what every metric is for.
    static DeviceArray<float> filled(int64_t rows, int d, int seed) {
        DeviceArray<float> data(rows * d);
        fillKeys(data.data(), DataType::Float32, rows, d, Order::Random, seed);
        return data;
    }

    void prepare(const std::vector<Cell>& cells, size_t first) {
        const Cell& cell = cells[first];
        indexes_.reset();
        int64_t mostQueries = 0;
        for (size_t i = first;
             i < cells.size() && sharesIndexes(cell, cells[i]);
             ++i) {
            mostQueries = std::max(mostQueries, cells[i].q);
        }
        const DeviceArray<float> vectors = filled(cell.n, cell.d, 1);
        queries_ = DeviceArray<float>();
        queries_ = filled(mostQueries, cell.d, 2);
        indexes_ = std::make_unique<Indexes>(
                cell, vectors.data(), options_.wants("faiss_flat"));
        BITS_CUDA_CHECK(cudaDeviceSynchronize());
    }

    void runCell(const Cell& cell) {
        distances_ = DeviceArray<float>(cell.q * cell.k);
        labels_ = DeviceArray<idx_t>(cell.q * cell.k);
        indexes_->setPower(cell.metric.p);
        measure(cell, "faiss_bits", *indexes_->ours);
        if (!indexes_->faiss) {
            return;
        }
        if (cell.k >= 2048) {
            std::printf("note: faiss_flat has no k = %d\n", cell.k);
            return;
        }
        const auto ours = firstLabels(cell);
        measure(cell, "faiss_flat", *indexes_->faiss);
        const double share = shareInBoth(ours, firstLabels(cell), cell.k);
        if (share < 0.9) {
            std::printf("WRONG: only %.3f of the labels in both\n", share);
            ++wrong_;
        }
    }

    void measure(
            const Cell& cell,
            const std::string& method,
            const faiss::Index& index) {
        TimingMode mode;
        mode.wallClock = true;
        mode.before = [&] { flush_.enqueue(); };
        const Measured time = timeCall(
                [&](int) {
                    index.search(
                            cell.q,
                            queries_.data(),
                            cell.k,
                            distances_.data(),
                            labels_.data());
                },
                mode);
        const double rate = double(cell.q) * double(cell.n) / (time.ms * 1e6);
        Row row;
        row.text("bench", "metrics")
                .text("method", method)
                .integer("n", cell.n)
                .integer("d", cell.d)
                .integer("q", cell.q)
                .integer("k", cell.k)
                .text("metric", cell.metric.name);
        if (cell.metric.p != 0) {
            row.number("p", cell.metric.p);
        }
        report_.add(row.number("ms", time.ms).number("gdist_s", rate));
        std::printf(
                "%5.0fs %-10s n=%lld d=%-3d q=%-5lld k=%-4d %s p=%g "
                "%10.4f ms %8.2f Gdist/s (%d)\n",
                budget_.seconds(),
                method.c_str(),
                (long long)cell.n,
                cell.d,
                (long long)cell.q,
                cell.k,
                cell.metric.name,
                cell.metric.p,
                time.ms,
                rate,
                time.repeats);
        std::fflush(stdout);
    }

    std::vector<idx_t> firstLabels(const Cell& cell) const {
        return downloadLabels(labels_, std::min<int64_t>(cell.q, 16) * cell.k);
    }

    const Options& options_;
    Budget budget_;
    Report report_;
    CacheFlush flush_;
    std::unique_ptr<Indexes> indexes_;
    DeviceArray<float> queries_;
    DeviceArray<float> distances_;
    DeviceArray<idx_t> labels_;
    int wrong_ = 0;
};

int runMain(int argc, char** argv) {
    std::vector<int64_t> ns = {1 << 20};
    std::vector<int64_t> ds = {128, 16, 3};
    std::vector<int64_t> qs = {1, 1024, 10240};
    std::vector<int64_t> ks = {10, 100};
    std::vector<std::string> metrics;
    auto numbers = [](std::vector<int64_t>& list) {
        return [&list](const std::string& v) { list = parseNumbers(v); };
    };
    const Options options = parseOptions(
            argc,
            argv,
            {{"--ns", "vectors (default: 2^20)", numbers(ns)},
             {"--ds", "dimensions (128,16,3)", numbers(ds)},
             {"--qs", "queries a call (1,1024,10240)", numbers(qs)},
             {"--ks", "neighbours (10,100)", numbers(ks)},
             {"--metrics",
              "of L1,Linf,Lp,Canberra,BrayCurtis,JensenShannon,Jaccard",
              [&](const std::string& v) { metrics = splitList(v); }}});
    options.requireRivals({"faiss_flat"});

    std::vector<Cell> cells;
    for (int64_t n : ns) {
        for (int64_t d : ds) {
            for (const MetricKind& kind : metricKinds<faiss::MetricType>()) {
                if (!metrics.empty() &&
                    std::find(metrics.begin(), metrics.end(), kind.name) ==
                            metrics.end()) {
                    continue;
                }
                for (int64_t q : qs) {
                    for (int64_t k : ks) {
                        cells.push_back({kind, n, int(d), q, int(k)});
                    }
                }
            }
        }
    }
    if (cells.empty()) {
        std::fprintf(stderr, "no cells are left\n");
        return 2;
    }
    MetricsBench bench(options);
    bench.run(cells);
    return bench.isRight() ? 0 : 1;
}

} // namespace
} // namespace faiss_bits::bench

int main(int argc, char** argv) {
    using namespace faiss_bits::bench;
    return runProgram(argc, argv, runMain);
}
