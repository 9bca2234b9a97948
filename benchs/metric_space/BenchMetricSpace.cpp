/// Times range searches by List of Clusters, SSS and brute force: group by
/// group and as Barrientos et al. 2012 on the GPU, sequential and OpenMP on the
/// CPU. benchs/README.md says how.

#include <omp.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <optional>
#include <vector>

#include "benchs/common/DeviceData.h"
#include "benchs/common/Options.h"
#include "benchs/common/Report.h"
#include "benchs/common/Timing.h"
#include "benchs/metric_space/MetricData.h"
#include "benchs/metric_space/MetricIndexes.h"
#include "kernels/common/DeviceTraits.h"
#include "kernels/metric_space/MetricSearch.h"
#include "kernels/metric_space/cpu/Search.h"

namespace faiss_bits::bench {
namespace {

using namespace metric_space;

constexpr size_t kScratch = size_t(2) << 30;

struct Settings {
    std::vector<int64_t> queries = {32, 10000};
    std::vector<double> shares = {0.0001, 0.001, 0.01};
    std::vector<int64_t> parts = {1}; // 4: of a quarter of the vectors
    std::vector<std::string> metrics = {"L2"};
    MetricIndexSettings indexes;
    /// Cells of no more queries run on the CPU too.
    int64_t cpuQueries = 32;
};

Metric metricNamed(const std::string& name) {
    if (name == "L1") {
        return Metric::L1;
    }
    if (name == "Linf") {
        return Metric::Linf;
    }
    if (name != "L2") {
        throw std::runtime_error("--metrics " + name);
    }
    return Metric::L2;
}

/// What is the same for the rows of a cell.
struct Cell {
    std::string data;
    Metric metric;
    std::string metricName;
    idx_t n;
    int d;
    idx_t q;
    double share;
    float radius;
};

class MetricBench {
   public:
    explicit MetricBench(const Options& options)
            : budget_(options.maxSeconds),
              report_(options.out,
                      collectMeta(options, measureReadBandwidth())),
              multiprocessors_(deviceTraits().multiprocessors),
              scratch_(kScratch) {}

    void run(const MetricData& data, const Settings& settings) {
        for (const std::string& name : settings.metrics) {
            for (const int64_t part : settings.parts) {
                if (!budget_.isSpent()) {
                    runPart(data, settings, name, data.n() / part);
                }
            }
        }
        std::printf(
                "%zu rows, %.0f s, %d wrong\n",
                report_.size(),
                budget_.seconds(),
                wrong_);
    }

    bool isRight() const {
        return wrong_ == 0;
    }

   private:
    void runPart(
            const MetricData& data,
            const Settings& settings,
            const std::string& name,
            idx_t n) {
        const Metric metric = metricNamed(name);
        vectors_ = DeviceArray<float>(size_t(n) * data.d);
        queries_ = DeviceArray<float>(data.queries.size());
        BITS_CUDA_CHECK(cudaMemcpy(
                vectors_.data(),
                data.vectors.data(),
                size_t(n) * data.d * sizeof(float),
                cudaMemcpyHostToDevice));
        BITS_CUDA_CHECK(cudaMemcpy(
                queries_.data(),
                data.queries.data(),
                data.queries.size() * sizeof(float),
                cudaMemcpyHostToDevice));
        onHost_ = {metric, data.d, n, data.vectors.data()};
        const MetricVectors onDevice{metric, data.d, n, vectors_.data()};
        hostQueries_ = data.queries.data();
        const std::vector<float> radii =
                radiiOfShares(data, metric, n, settings.shares);
        indexes_ = makeMetricIndexes(
                onHost_,
                onDevice,
                settings.indexes,
                {scratch_.data(), kScratch});
        for (size_t s = 0; s < radii.size(); ++s) {
            for (const int64_t q : settings.queries) {
                const idx_t count = std::min<idx_t>(q, data.numQueries());
                runCell(settings,
                        {data.name,
                         metric,
                         name,
                         n,
                         data.d,
                         count,
                         settings.shares[s],
                         radii[s]});
            }
        }
    }

    void runCell(const Settings& settings, const Cell& cell) {
        if (budget_.isSpent()) {
            std::printf("--max-seconds is spent\n");
            return;
        }
        want_.reset();
        for (MetricIndex& index : indexes_) {
            for (const Mapping mapping :
                 {Mapping::GroupMajor, Mapping::QueryMajor}) {
                onGpu(cell, index, mapping);
            }
        }
        if (cell.q > settings.cpuQueries) {
            return;
        }
        for (MetricIndex& index : indexes_) {
            if (index.forCpu) {
                onCpu(cell, index, 1);
                onCpu(cell, index, omp_get_max_threads());
            }
        }
    }

    void onGpu(const Cell& cell, const MetricIndex& index, Mapping mapping) {
        MetricSearchProblem problem;
        problem.groups = index.memory.groups();
        problem.numQueries = cell.q;
        problem.queries = queries_.data();
        problem.mapping = mapping;
        problem.multiprocessors = multiprocessors_;
        const MetricSearchPlan plan =
                planMetricSearch(problem, 0, kScratch * 9 / 10);
        const auto search = [&](const auto& take, MetricCounters* counters) {
            runMetricRange(
                    plan,
                    problem,
                    cell.radius,
                    {scratch_.data(), kScratch},
                    nullptr,
                    take,
                    counters);
        };
        MetricCounters counters;
        cpu::RangeResult<float> got;
        got.limits.push_back(0);
        search([&](const MetricRangePart& part) { appendPart(part, got); },
               &counters);
        check(cell, index, got);
        TimingMode mode;
        mode.wallClock = true;
        // The check was a call before.
        mode.totalMs = 40;
        mode.fewMs = 30;
        mode.onceMs = 100;
        mode.firstMs = 100;
        const Measured time = timeCall(
                [&](int) { search([](const MetricRangePart&) {}, nullptr); },
                mode);
        addRow(cell,
               index,
               mapping == Mapping::GroupMajor ? "group_major" : "query_major",
               1,
               time.ms,
               got.ids.size(),
               counters);
    }

    void onCpu(const Cell& cell, const MetricIndex& index, int threads) {
        CpuSearch search;
        search.vectors = onHost_;
        search.ordered = index.ordered.empty() ? nullptr : index.ordered.data();
        search.numQueries = cell.q;
        search.queries = hostQueries_;
        search.threads = threads;
        const auto run = [&] {
            return index.list ? rangeSearch(search, *index.list, cell.radius)
                    : index.table
                    ? rangeSearch(search, *index.table, cell.radius)
                    : rangeSearch(search, cell.radius);
        };
        // The threads of OpenMP are there then.
        search.numQueries = std::min<idx_t>(cell.q, threads);
        run();
        search.numQueries = cell.q;
        MetricCounters counters;
        search.counters = &counters;
        const auto start = std::chrono::steady_clock::now();
        const cpu::RangeResult<float> got = run();
        const double ms = std::chrono::duration<double, std::milli>(
                                  std::chrono::steady_clock::now() - start)
                                  .count();
        check(cell, index, got);
        addRow(cell,
               index,
               threads == 1 ? "sequential" : "openmp",
               threads,
               ms,
               got.ids.size(),
               counters);
    }

    /// All answers of a cell are those of brute force on the GPU, bit for bit.
    void check(
            const Cell& cell,
            const MetricIndex& index,
            const cpu::RangeResult<float>& got) {
        if (!want_) {
            want_ = got;
            return;
        }
        if (got.limits != want_->limits || got.ids != want_->ids ||
            std::memcmp(
                    got.distances.data(),
                    want_->distances.data(),
                    got.distances.size() * sizeof(float)) != 0) {
            std::printf(
                    "WRONG: %s on %s, q = %lld, share %g\n",
                    index.name.c_str(),
                    cell.data.c_str(),
                    (long long)cell.q,
                    cell.share);
            ++wrong_;
        }
    }

    void addRow(
            const Cell& cell,
            const MetricIndex& index,
            const char* mapping,
            int threads,
            double ms,
            size_t results,
            const MetricCounters& counters) {
        const double pairs = double(cell.n) * double(cell.q);
        const MetricGroups& groups = index.memory.groups();
        Row row;
        row.text("bench", "range")
                .text("method", "faiss_bits")
                .text("index", index.name)
                .text("mapping", mapping)
                .text("settings", index.settings)
                .integer("references", groups.numReferences)
                .text("data", cell.data)
                .text("metric", cell.metricName)
                .integer("n", cell.n)
                .integer("d", cell.d)
                .integer("q", cell.q)
                .number("selectivity", cell.share)
                .number("radius", cell.radius)
                .integer("threads", threads)
                .number("ms", ms)
                .integer("results", int64_t(results))
                .number("evaluations", double(counters.distances) / pairs)
                .number("build_ms", index.buildMs);
        report_.add(row);
        std::printf(
                "%5.0fs %-10s n=%lld q=%-6lld %.4f %-17s %-12s refs=%-5u "
                "%10.4f ms %9zu results %.4f of n\n",
                budget_.seconds(),
                cell.data.c_str(),
                (long long)cell.n,
                (long long)cell.q,
                cell.share,
                index.name.c_str(),
                mapping,
                groups.numReferences,
                ms,
                results,
                double(counters.distances) / pairs);
        std::fflush(stdout);
    }

    Budget budget_;
    Report report_;
    int multiprocessors_;
    DeviceArray<uint8_t> scratch_;
    DeviceArray<float> vectors_;
    DeviceArray<float> queries_;
    MetricVectors onHost_;
    const float* hostQueries_ = nullptr;
    std::list<MetricIndex> indexes_;
    std::optional<cpu::RangeResult<float>> want_;
    int wrong_ = 0;
};

int runMain(int argc, char** argv) {
    Settings grid;
    std::vector<std::string> files;
    int64_t clustered = 100000;
    bool withFigures = true;
    const auto numbers = [](std::vector<int64_t>& list) {
        return [&list](const std::string& v) { list = parseNumbers(v); };
    };
    const Options options = parseOptions(
            argc,
            argv,
            {{"--data",
              "name:PATH.fvecs or name:PATH.bvecs, with commas; with :N behind "
              "it the last N are queries, else 20%",
              [&](const std::string& v) { files = splitList(v); }},
             {"--clustered",
              "so many vectors of 16 dimensions around 1,000 centers (100000; "
              "0: none)",
              [&](const std::string& v) {
                  clustered = parseNumbers(v).front();
              }},
             {"--qs", "queries a call (32,10000)", numbers(grid.queries)},
             {"--metrics",
              "of L2,L1,Linf (L2)",
              [&](const std::string& v) { grid.metrics = splitList(v); }},
             {"--cpu-queries",
              "cells of no more than so many run on the CPU too (32)",
              [&](const std::string& v) {
                  grid.cpuQueries = parseNumbers(v).front();
              }},
             {"--figures",
              "on (default): numbers of pivots and of vectors too; off",
              [&](const std::string& v) { withFigures = v == "on"; }}});
    // Figure 2 and Table II of the paper.
    Settings pivots = grid;
    pivots.queries = {1000};
    pivots.shares = {0.001};
    pivots.cpuQueries = 0;
    pivots.indexes.alphas = {};
    pivots.indexes.pivots = {1, 2, 4, 8, 16, 32, 64};
    Settings sizes = grid;
    sizes.queries = {32};
    sizes.shares = {0.01};
    sizes.parts = {2, 4, 8};

    constexpr uint64_t kSeed = 1;
    MetricBench bench(options);
    const auto runAll = [&](const MetricData& data) {
        bench.run(data, grid);
        if (withFigures) {
            bench.run(data, pivots);
            bench.run(data, sizes);
        }
    };
    for (const std::string& spec : files) {
        runAll(readMetricData(spec, kSeed));
    }
    if (clustered > 0) {
        runAll(clusteredData(clustered, 16, kSeed));
    }
    return bench.isRight() ? 0 : 1;
}

} // namespace
} // namespace faiss_bits::bench

int main(int argc, char** argv) {
    using namespace faiss_bits::bench;
    return runProgram(argc, argv, runMain);
}
