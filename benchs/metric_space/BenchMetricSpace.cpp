/// Times range searches by List of Clusters, SSS and brute force: group by
/// group and as Barrientos et al. 2012 on the GPU, sequential and OpenMP on the
/// CPU. benchs/README.md says how.

#include <omp.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <memory>
#include <optional>
#include <vector>

#include "benchs/common/DeviceData.h"
#include "benchs/common/Options.h"
#include "benchs/common/Report.h"
#include "benchs/common/Timing.h"
#include "benchs/metric_space/MetricData.h"
#include "kernels/common/DeviceTraits.h"
#include "kernels/metric_space/GroupsMemory.h"
#include "kernels/metric_space/MetricBuild.h"
#include "kernels/metric_space/MetricSearch.h"
#include "kernels/metric_space/cpu/Build.h"
#include "kernels/metric_space/cpu/Search.h"

namespace faiss_bits::bench {
namespace {

using namespace metric_space;
using Clock = std::chrono::steady_clock;

constexpr size_t kScratch = size_t(2) << 30;
constexpr int kGroup = 64;

struct Settings {
    std::vector<std::string> data;
    std::vector<int64_t> queries = {100, 10000};
    std::vector<double> shares = {0.0001, 0.001, 0.01};
    std::vector<int64_t> parts = {1}; // 4: of a quarter of the vectors too
    std::vector<int64_t> pivots;      // numbers of them to try (figure 2)
    std::vector<std::string> metrics = {"L2"};
    double alpha = 0.66;
    double manyAlpha = 0.4; // of the group-major mapping
    int64_t cpuQueries = 100;
    int64_t clustered = 0; // vectors
};

std::shared_ptr<void> allocate(size_t bytes) {
    void* memory = nullptr;
    BITS_CUDA_CHECK(cudaMalloc(&memory, bytes));
    return {memory, [](void* p) { (void)cudaFree(p); }};
}

double msSince(Clock::time_point start) {
    return std::chrono::duration<double, std::milli>(Clock::now() - start)
            .count();
}

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

/// One index on the GPU, and for the CPU.
struct Index {
    std::string name;
    std::string note; // what is particular: bucketSize, alpha
    GroupsMemory memory;
    std::optional<ListOfClusters> list;
    std::optional<PivotTable> table;
    double buildMs = 0;
};

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
    MetricBench(const Options& options, const Settings& settings)
            : settings_(settings),
              budget_(options.maxSeconds),
              report_(options.out,
                      collectMeta(options, measureReadBandwidth())),
              multiprocessors_(deviceTraits().multiprocessors),
              scratch_(kScratch) {}

    void run(const MetricData& data) {
        for (const std::string& name : settings_.metrics) {
            for (const int64_t part : settings_.parts) {
                if (!budget_.isSpent()) {
                    runPart(data, name, data.n() / part);
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
    void runPart(const MetricData& data, const std::string& name, idx_t n) {
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
        onDevice_ = {metric, data.d, n, vectors_.data()};
        hostQueries_ = data.queries.data();
        const std::vector<float> radii =
                radiiOfShares(data, metric, n, settings_.shares);
        makeIndexes();
        for (size_t s = 0; s < radii.size(); ++s) {
            for (const int64_t q : settings_.queries) {
                const idx_t count = std::min<idx_t>(q, data.numQueries());
                runCell(
                        {data.name,
                         metric,
                         name,
                         n,
                         data.d,
                         count,
                         settings_.shares[s],
                         radii[s]});
            }
        }
    }

    void makeIndexes() {
        indexes_.clear();
        Index& brute = add("brute_force", "");
        brute.memory = GroupsMemory(onDevice_, allocate, nullptr);
        Index& list = add("list_of_clusters", "bucketSize = 64");
        auto start = Clock::now();
        list.list = buildListOfClustersOnGpu(
                onDevice_, {}, {scratch_.data(), kScratch}, nullptr);
        list.memory = GroupsMemory(onDevice_, *list.list, allocate, nullptr);
        list.buildMs = msSince(start);
        addPivots(settings_.alpha, PivotOptions().maxPivots);
        addPivots(settings_.manyAlpha, PivotOptions().maxPivots);
        for (const int64_t pivots : settings_.pivots) {
            addPivots(1e-6, int(pivots)); // as many as it may have
        }
        for (Index& index : indexes_) {
            index.memory.makeColumns(allocate, nullptr);
        }
        BITS_CUDA_CHECK(cudaDeviceSynchronize());
    }

    Index& add(const std::string& name, const std::string& note) {
        indexes_.emplace_back();
        indexes_.back().name = name;
        indexes_.back().note = note;
        return indexes_.back();
    }

    void addPivots(double alpha, int maxPivots) {
        const auto start = Clock::now();
        PivotOptions options;
        options.alpha = alpha;
        options.maxPivots = maxPivots;
        Index& sss = add("sss", "");
        sss.table = buildPivotsOnGpu(
                onDevice_, options, {scratch_.data(), kScratch}, nullptr);
        sss.memory =
                GroupsMemory(onDevice_, *sss.table, kGroup, allocate, nullptr);
        sss.buildMs = msSince(start);
        sss.note = "alpha = " + std::to_string(alpha).substr(0, 4);
    }

    void runCell(const Cell& cell) {
        if (budget_.isSpent()) {
            std::printf("--max-seconds is spent\n");
            return;
        }
        want_.reset();
        for (Index& index : indexes_) {
            for (const Mapping mapping :
                 {Mapping::GroupMajor, Mapping::QueryMajor}) {
                onGpu(cell, index, mapping);
            }
        }
        if (cell.q > settings_.cpuQueries) {
            return;
        }
        for (Index& index : indexes_) {
            if (index.table && index.table->distances.empty()) {
                fillPivotDistances(onHost_, *index.table);
            }
            for (const int threads : {1, 0}) {
                onCpu(cell, index, threads);
            }
        }
    }

    void onGpu(const Cell& cell, const Index& index, Mapping mapping) {
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
        search([&](const MetricRangePart& part) { append(part, got); },
               &counters);
        check(cell, index, got);
        TimingMode mode;
        mode.wallClock = true;
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

    static void append(
            const MetricRangePart& part,
            cpu::RangeResult<float>& got) {
        std::vector<idx_t> limits(part.rows + 1);
        const size_t before = got.ids.size();
        got.distances.resize(before + part.total);
        got.ids.resize(before + part.total);
        const auto copy = [](void* to, const void* from, size_t bytes) {
            BITS_CUDA_CHECK(
                    cudaMemcpy(to, from, bytes, cudaMemcpyDeviceToHost));
        };
        copy(limits.data(), part.limits, limits.size() * sizeof(idx_t));
        copy(got.distances.data() + before,
             part.distances,
             part.total * sizeof(float));
        copy(got.ids.data() + before, part.ids, part.total * sizeof(idx_t));
        for (idx_t i = 1; i <= part.rows; ++i) {
            got.limits.push_back(idx_t(before) + limits[i]);
        }
    }

    void onCpu(const Cell& cell, const Index& index, int threads) {
        CpuSearch search;
        search.vectors = onHost_;
        search.numQueries = cell.q;
        search.queries = hostQueries_;
        search.threads = threads;
        MetricCounters counters;
        search.counters = &counters;
        // The first call is the measurement: it has no launches to warm up.
        const auto start = Clock::now();
        const cpu::RangeResult<float> got = index.list
                ? rangeSearch(search, *index.list, cell.radius)
                : index.table ? rangeSearch(search, *index.table, cell.radius)
                              : rangeSearch(search, cell.radius);
        const double ms = msSince(start);
        check(cell, index, got);
        addRow(cell,
               index,
               threads == 1 ? "sequential" : "openmp",
               threads == 1 ? 1 : int(hostThreads()),
               ms,
               got.ids.size(),
               counters);
    }

    /// All answers of a cell are those of brute force on the GPU, bit for bit.
    void check(
            const Cell& cell,
            const Index& index,
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
            const Index& index,
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
                .text("settings", index.note)
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

    static unsigned hostThreads();

    const Settings& settings_;
    Budget budget_;
    Report report_;
    int multiprocessors_;
    DeviceArray<uint8_t> scratch_;
    DeviceArray<float> vectors_;
    DeviceArray<float> queries_;
    MetricVectors onHost_;
    MetricVectors onDevice_;
    const float* hostQueries_ = nullptr;
    std::vector<Index> indexes_;
    std::optional<cpu::RangeResult<float>> want_;
    int wrong_ = 0;
};

unsigned MetricBench::hostThreads() {
    return unsigned(omp_get_max_threads());
}

int runMain(int argc, char** argv) {
    Settings settings;
    const auto numbers = [](std::vector<int64_t>& list) {
        return [&list](const std::string& v) { list = parseNumbers(v); };
    };
    const Options options = parseOptions(
            argc,
            argv,
            {{"--data",
              "name:PATH.fvecs or name:PATH.bvecs, with commas",
              [&](const std::string& v) { settings.data = splitList(v); }},
             {"--clustered",
              "so many vectors around 1,000 centers, of 16 dimensions (none)",
              [&](const std::string& v) {
                  settings.clustered = parseNumbers(v).front();
              }},
             {"--qs", "queries a call (100,10000)", numbers(settings.queries)},
             {"--parts",
              "1: all vectors, 2: half of them, ... (1)",
              numbers(settings.parts)},
             {"--pivots",
              "also SSS with so many (none)",
              numbers(settings.pivots)},
             {"--metrics",
              "of L2,L1,Linf (L2)",
              [&](const std::string& v) { settings.metrics = splitList(v); }},
             {"--cpu-queries",
              "cells of no more than so many run on the CPU too (100)",
              [&](const std::string& v) {
                  settings.cpuQueries = parseNumbers(v).front();
              }}});
    constexpr uint64_t kSeed = 1;
    MetricBench bench(options, settings);
    for (const std::string& spec : settings.data) {
        bench.run(readMetricData(spec, kSeed));
    }
    if (settings.clustered > 0) {
        bench.run(clusteredData(settings.clustered, 16, kSeed));
    }
    return bench.isRight() ? 0 : 1;
}

} // namespace
} // namespace faiss_bits::bench

int main(int argc, char** argv) {
    using namespace faiss_bits::bench;
    return runProgram(argc, argv, runMain);
}
