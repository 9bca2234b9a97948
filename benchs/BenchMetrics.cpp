/// Times GpuIndexBitsFlat against GpuIndexFlat by the metrics beyond L2 and
/// inner product. benchs/README.md says how.

#include <algorithm>
#include <cstdio>
#include <memory>
#include <vector>

#include <faiss/gpu/GpuIndexFlat.h>
#include <faiss/gpu/StandardGpuResources.h>

#include "benchs/FlatCells.h"
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

class MetricsBench : public FlatCells<Cell> {
   public:
    using FlatCells::FlatCells;

   private:
    /// Vectors and queries in (0, 1]: what every metric is for.
    static DeviceArray<float> filled(int64_t rows, int d, int seed) {
        DeviceArray<float> data(rows * d);
        fillKeys(data.data(), DataType::Float32, rows, d, Order::Random, seed);
        return data;
    }

    void prepare(const Cell& cell, int64_t mostQueries) override {
        indexes_.reset();
        const DeviceArray<float> vectors = filled(cell.n, cell.d, 1);
        queries_ = DeviceArray<float>();
        queries_ = filled(mostQueries, cell.d, 2);
        indexes_ = std::make_unique<Indexes>(
                cell, vectors.data(), options_.wants("faiss_flat"));
        BITS_CUDA_CHECK(cudaDeviceSynchronize());
    }

    void runCell(const Cell& cell) override {
        indexes_->setPower(cell.metric.p);
        measure(cell, "faiss_bits", *indexes_->ours);
        if (!indexes_->faiss || !isRivalsToo(cell)) {
            return;
        }
        const auto ours = firstLabels(cell);
        measure(cell, "faiss_flat", *indexes_->faiss);
        requireAlike(ours, firstLabels(cell), cell.k);
    }

    void measure(
            const Cell& cell,
            const std::string& method,
            const faiss::Index& index) {
        const Measured time = timeSearch(cell, index);
        const double rate = gigaDistances(cell, time);
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

    std::unique_ptr<Indexes> indexes_;
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
