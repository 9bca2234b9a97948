#pragma once

#include <cuda_profiler_api.h>
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
#include "benchs/metric_space/ProfileMark.h"
#include "kernels/common/DeviceTraits.h"
#include "kernels/metric_space/MetricSearch.h"
#include "kernels/metric_space/cpu/Search.h"

namespace faiss_bits::bench {

using namespace metric_space;

/// Of shuffles, clusters and copies.
constexpr uint64_t kSeed = 1;
constexpr size_t kMetricScratch = size_t(2) << 30;
/// Calls on the CPU whose median is a cell's time, unless the first one takes
/// longer than so many ms.
constexpr size_t kCpuCalls = 3;
constexpr double kLongCpuMs = 300;

/// What is measured.
struct MetricSettings {
    std::vector<int64_t> queries = {32, 10000};
    std::vector<double> shares = {0.0001, 0.001, 0.01};
    std::vector<int64_t> parts = {1}; // 4: of a quarter of the vectors
    std::vector<std::string> metrics = {"L2"};
    MetricIndexSettings indexes;
    /// Cells of no more queries run on the CPU too.
    int64_t cpuQueries = 32;
    /// Cells with more results are left out.
    double mostResults = 2e8;
    /// Of searches group by group, on the GPU; of those that have bounds.
    GroupWay way = GroupWay::Auto;
    /// One search a cell, for a profiler, and no time.
    bool profile = false;
};

inline GroupWay wayNamed(const std::string& name) {
    if (name == "lists") {
        return GroupWay::Lists;
    }
    if (name == "warps") {
        return GroupWay::Warps;
    }
    if (name != "auto") {
        throw std::runtime_error("--way " + name);
    }
    return GroupWay::Auto;
}

inline Metric metricNamed(const std::string& name) {
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
struct MetricCell {
    std::string data;
    Metric metric;
    std::string metricName;
    idx_t n;
    int d;
    idx_t q;
    double share;
    float radius;
};

/// Searches by every index and mapping, checked against each other, to a
/// report.
class MetricBench {
   public:
    explicit MetricBench(const Options& options)
            : budget_(options.maxSeconds),
              report_(options.out, metaOf(options)),
              multiprocessors_(deviceTraits().multiprocessors),
              scratch_(kMetricScratch) {}

    void run(const MetricData& data, const MetricSettings& settings) {
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
    static Meta metaOf(const Options& options) {
        Meta meta = collectMeta(options, measureReadBandwidth());
        meta.seed = kSeed;
        return meta;
    }

    void runPart(
            const MetricData& data,
            const MetricSettings& settings,
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
                {scratch_.data(), kMetricScratch});
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

    void runCell(const MetricSettings& settings, const MetricCell& cell) {
        if (budget_.isSpent()) {
            std::printf("--max-seconds is spent\n");
            return;
        }
        if (cell.share * double(cell.n) * double(cell.q) >
            settings.mostResults) {
            std::printf(
                    "left out: q = %lld of %lld, share %g has too many "
                    "results\n",
                    (long long)cell.q,
                    (long long)cell.n,
                    cell.share);
            return;
        }
        want_.reset();
        for (MetricIndex& index : indexes_) {
            for (const Mapping mapping :
                 {Mapping::GroupMajor, Mapping::QueryMajor}) {
                if (settings.way != GroupWay::Auto &&
                    mapping == Mapping::QueryMajor) {
                    continue;
                }
                onGpu(cell, index, mapping, settings);
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

    void onGpu(
            const MetricCell& cell,
            const MetricIndex& index,
            Mapping mapping,
            const MetricSettings& settings) {
        MetricSearchProblem problem;
        problem.groups = index.memory.groups();
        problem.numQueries = cell.q;
        problem.queries = queries_.data();
        problem.mapping = mapping;
        problem.multiprocessors = multiprocessors_;
        if (mapping == Mapping::GroupMajor &&
            problem.groups.kind != GroupBounds::None) {
            problem.way = settings.way;
            problem.vectors = vectors_.data(); // as the index classes
        }
        const MetricSearchPlan plan =
                planMetricSearch(problem, 0, kMetricScratch * 9 / 10);
        const auto search = [&](const auto& take, MetricCounters* counters) {
            runMetricRange(
                    plan,
                    problem,
                    cell.radius,
                    {scratch_.data(), kMetricScratch},
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
        const char* name =
                mapping == Mapping::GroupMajor ? "group_major" : "query_major";
        if (settings.profile) {
            BITS_CUDA_CHECK(cudaProfilerStart());
            enqueueProfileMark(++marks_);
            search([](const MetricRangePart&) {}, nullptr);
            BITS_CUDA_CHECK(cudaDeviceSynchronize());
            BITS_CUDA_CHECK(cudaProfilerStop());
            addRow(cell, index, name, 1, -1, got.ids.size(), counters);
            return;
        }
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
        addRow(cell, index, name, 1, time.ms, got.ids.size(), counters);
    }

    void onCpu(const MetricCell& cell, const MetricIndex& index, int threads) {
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
        cpu::RangeResult<float> got;
        const auto timed = [&] {
            const auto start = std::chrono::steady_clock::now();
            got = run();
            return std::chrono::duration<double, std::milli>(
                           std::chrono::steady_clock::now() - start)
                    .count();
        };
        std::vector<double> times{timed()};
        search.counters = nullptr; // they count one call
        // One slow call of a host that others use does not make a cell.
        while (times.size() < kCpuCalls && times.front() < kLongCpuMs) {
            times.push_back(timed());
        }
        std::sort(times.begin(), times.end());
        const double ms = times[times.size() / 2];
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
            const MetricCell& cell,
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
            const MetricCell& cell,
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
                .integer("results", int64_t(results))
                .number("evaluations", double(counters.distances) / pairs);
        if (ms < 0) {
            row.integer("mark", marks_);
        } else {
            row.number("ms", ms).number("build_ms", index.buildMs);
        }
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
    int marks_ = 0; // of cells for a profiler
};

} // namespace faiss_bits::bench
