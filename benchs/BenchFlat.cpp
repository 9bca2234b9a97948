/// Times GpuIndexBitsFlat against GpuIndexFlat. benchs/README.md says how.

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <vector>

#include <faiss/gpu/GpuIndexFlat.h>
#include <faiss/gpu/StandardGpuResources.h>

#include "benchs/FlatCells.h"
#include "benchs/FlatData.h"
#include "faiss_bits/flat/GpuIndexBitsFlat.h"

namespace faiss_bits::bench {
namespace {

struct Cell {
    int64_t n;
    int d;
    int64_t q;
    int k;
    bool isL2 = true;
    DataType type = DataType::Float32;
};

/// Cells that search the same vectors stand together.
bool sharesIndexes(const Cell& a, const Cell& b) {
    return a.n == b.n && a.d == b.d && a.isL2 == b.isL2 && a.type == b.type;
}

const char* nameOfMetric(bool isL2) {
    return isL2 ? "L2" : "IP";
}

std::vector<Cell> publishedCells() {
    const int64_t n = 1 << 20;
    std::vector<Cell> cells;
    for (int d : {128, 32, 768, 64, 256, 16}) {
        for (int64_t q : {1, 16, 128, 1024, 10240}) {
            for (int k : {1, 10, 100, 1024, 2000}) {
                cells.push_back({n, d, q, k});
            }
        }
    }
    for (bool isL2 : {false, true}) {
        for (int64_t q : {1, 16, 1024, 10240}) {
            for (int k : {10, 100}) {
                const DataType type =
                        isL2 ? DataType::Float16 : DataType::Float32;
                cells.push_back({n, 128, q, k, isL2, type});
            }
        }
    }
    return cells;
}

template <class T, class Field>
void keepOnly(
        std::vector<Cell>& cells,
        const std::vector<T>& list,
        Field field) {
    if (list.empty()) {
        return;
    }
    std::erase_if(cells, [&](const Cell& cell) {
        return std::find(list.begin(), list.end(), field(cell)) == list.end();
    });
}

/// Both indexes over the same vectors, each with its own resources.
struct Indexes {
    faiss::gpu::StandardGpuResources ourResources;
    faiss::gpu::StandardGpuResources faissResources;
    std::unique_ptr<gpu::GpuIndexBitsFlat> ours;
    std::unique_ptr<faiss::Index> faiss;

    Indexes(const Cell& cell, const float* vectors, bool withRival) {
        const auto metric =
                cell.isL2 ? faiss::METRIC_L2 : faiss::METRIC_INNER_PRODUCT;
        gpu::GpuIndexBitsFlatConfig ourConfig;
        ourConfig.useFloat16 = cell.type == DataType::Float16;
        ours = std::make_unique<gpu::GpuIndexBitsFlat>(
                &ourResources, cell.d, metric, ourConfig);
        ours->add(cell.n, vectors);
        if (!withRival) {
            return;
        }
        faiss::gpu::GpuIndexFlatConfig config;
        config.useFloat16 = ourConfig.useFloat16;
        faiss = std::make_unique<faiss::gpu::GpuIndexFlat>(
                &faissResources, cell.d, metric, config);
        faiss->add(cell.n, vectors);
    }
};

class FlatBench : public FlatCells<Cell> {
   public:
    FlatBench(const Options& options, FlatData data, uint64_t clusters)
            : FlatCells(options), data_(data), clusters_(clusters) {}

   private:
    void prepare(const Cell& cell, int64_t mostQueries) override {
        indexes_.reset();
        DeviceArray<float> vectors(cell.n * cell.d);
        fillFlatData(
                vectors.data(), data_, false, cell.n, cell.d, 1, clusters_);
        queries_ = DeviceArray<float>();
        queries_ = DeviceArray<float>(mostQueries * cell.d);
        fillFlatData(
                queries_.data(),
                data_,
                true,
                mostQueries,
                cell.d,
                2,
                clusters_);
        indexes_ = std::make_unique<Indexes>(
                cell, vectors.data(), options_.wants("faiss_flat"));
        BITS_CUDA_CHECK(cudaDeviceSynchronize());
    }

    void runCell(const Cell& cell) override {
        indexes_->ours->reset_stats();
        measure(cell, "faiss_bits", *indexes_->ours);
        const auto certified = someLabels(cell);
        if (options_.wants("faiss_bits_plain")) {
            indexes_->ours->search_mode = SearchMode::Plain;
            measure(cell, "faiss_bits_plain", *indexes_->ours);
            indexes_->ours->search_mode = SearchMode::Certified;
        }
        const auto ours = firstLabels(cell);
        if (options_.wants("faiss_bits_fast")) {
            indexes_->ours->search_mode = SearchMode::Fast;
            measure(cell, "faiss_bits_fast", *indexes_->ours, &certified);
            indexes_->ours->search_mode = SearchMode::Certified;
        }
        if (!indexes_->faiss || !isRivalsToo(cell)) {
            return;
        }
        // Equal distances are many in other data, and any of them would do.
        const bool isUniform = data_ == FlatData::Uniform;
        measure(cell,
                "faiss_flat",
                *indexes_->faiss,
                isUniform ? &certified : nullptr);
        if (isUniform) {
            requireAlike(ours, firstLabels(cell), cell.k);
        }
    }

    void measure(
            const Cell& cell,
            const std::string& method,
            const faiss::Index& index,
            const std::vector<idx_t>* certified = nullptr) {
        const Measured time = timeSearch(cell, index);
        const double rate = gigaDistances(cell, time);
        Row row;
        row.text("bench", "flat")
                .text("method", method)
                .integer("n", cell.n)
                .integer("d", cell.d)
                .integer("q", cell.q)
                .integer("k", cell.k)
                .text("metric", nameOfMetric(cell.isL2))
                .text("dtype", nameOf(cell.type));
        if (data_ != FlatData::Uniform) {
            row.text("data", nameOf(data_));
        }
        if (isClustered(data_)) {
            row.integer("clusters", int64_t(clusters_));
        }
        row.number("ms", time.ms).number("gdist_s", rate);
        std::string note;
        if (certified) {
            const double recall =
                    shareInBoth(*certified, someLabels(cell), cell.k);
            row.number("recall", recall);
            note = ", recall " + std::to_string(recall);
        }
        if (method == "faiss_bits") {
            const double repeated = repeatedShare();
            if (data_ != FlatData::Uniform) {
                row.number("repeated", repeated);
            }
            if (repeated > 0) {
                note = ", " + std::to_string(repeated) + " repeated";
            }
        }
        report_.add(row);
        std::printf(
                "%5.0fs %-10s n=%lld d=%-3d q=%-5lld k=%-4d %s %s "
                "%10.4f ms %8.2f Gdist/s (%d%s)\n",
                budget_.seconds(),
                method.c_str(),
                (long long)cell.n,
                cell.d,
                (long long)cell.q,
                cell.k,
                nameOfMetric(cell.isL2),
                nameOf(cell.type).c_str(),
                time.ms,
                rate,
                time.repeats,
                note.c_str());
        std::fflush(stdout);
    }

    /// Of 1,024 queries at most.
    std::vector<idx_t> someLabels(const Cell& cell) const {
        constexpr int64_t kSome = 1024;
        return downloadLabels(labels_, std::min(cell.q, kSome) * cell.k);
    }

    /// The share of our searches' queries since reset_stats() that were
    /// repeated.
    double repeatedShare() const {
        const SearchStats stats = indexes_->ours->stats();
        const double all = double(stats.repeated + stats.certified);
        return all > 0 ? double(stats.repeated) / all : 0;
    }

    FlatData data_;
    uint64_t clusters_;
    std::unique_ptr<Indexes> indexes_;
};

int runMain(int argc, char** argv) {
    std::vector<int64_t> ns;
    std::vector<int64_t> ds;
    std::vector<int64_t> qs;
    std::vector<int64_t> ks;
    std::vector<std::string> metrics;
    std::vector<std::string> types;
    std::string data = "uniform";
    int64_t clusters = kFlatClusters;
    auto numbers = [](std::vector<int64_t>& list) {
        return [&list](const std::string& v) { list = parseNumbers(v); };
    };
    auto names = [](std::vector<std::string>& list) {
        return [&list](const std::string& v) { list = splitList(v); };
    };
    const Options options = parseOptions(
            argc,
            argv,
            {{"--ns", "vectors (default: published)", numbers(ns)},
             {"--ds", "dimensions", numbers(ds)},
             {"--qs", "queries a call", numbers(qs)},
             {"--ks", "neighbours", numbers(ks)},
             {"--metrics", "of L2,IP", names(metrics)},
             {"--dtypes", "of float32,float16 (storage)", names(types)},
             {"--data",
              "uniform (default), far, clusters, few, equal, infinite, "
              "scales, near, bits, clustered or clustered_sorted",
              [&](const std::string& v) { data = v; }},
             {"--clusters",
              "of clustered and clustered_sorted (default: 256)",
              [&](const std::string& v) {
                  clusters = parseNumbers(v).at(0);
              }}});
    const FlatData kind = flatDataOf(data);
    if (clusters < 1) {
        std::fprintf(
                stderr, "--clusters is %lld, below 1\n", (long long)clusters);
        return 2;
    }

    std::vector<Cell> cells = publishedCells();
    if (!ds.empty() && !qs.empty() && !ks.empty()) {
        // All given: any cells, published or not.
        cells.clear();
        ns = ns.empty() ? std::vector<int64_t>{1 << 20} : ns;
        metrics = metrics.empty() ? std::vector<std::string>{"L2"} : metrics;
        types = types.empty() ? std::vector<std::string>{"float32"} : types;
        for (int64_t n : ns) {
            for (int64_t d : ds) {
                for (bool isL2 : {true, false}) {
                    for (DataType type :
                         {DataType::Float32, DataType::Float16}) {
                        for (int64_t q : qs) {
                            for (int64_t k : ks) {
                                cells.push_back(
                                        {n, int(d), q, int(k), isL2, type});
                            }
                        }
                    }
                }
            }
        }
    }
    keepOnly(cells, ns, [](const Cell& c) { return c.n; });
    keepOnly(cells, ds, [](const Cell& c) { return int64_t(c.d); });
    keepOnly(cells, qs, [](const Cell& c) { return c.q; });
    keepOnly(cells, ks, [](const Cell& c) { return int64_t(c.k); });
    keepOnly(cells, metrics, [](const Cell& c) {
        return std::string(nameOfMetric(c.isL2));
    });
    keepOnly(cells, types, [](const Cell& c) { return nameOf(c.type); });
    if (cells.empty()) {
        std::fprintf(stderr, "no cells are left\n");
        return 2;
    }
    FlatBench bench(options, kind, uint64_t(clusters));
    bench.run(cells);
    return bench.isRight() ? 0 : 1;
}

} // namespace
} // namespace faiss_bits::bench

int main(int argc, char** argv) {
    using namespace faiss_bits::bench;
    return runProgram(argc, argv, runMain);
}
