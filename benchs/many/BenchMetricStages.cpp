/// Times range searches by a List of Clusters over several devices, in 1, 1.5
/// and 2 stages (Barrientos et al. 2012, VII), beside one device and the CPU.
/// benchs/README.md says how.

#include <omp.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <memory>
#include <vector>

#include <faiss/gpu/StandardGpuResources.h>
#include <faiss/impl/AuxIndexStructures.h>

#include "benchs/common/DeviceData.h"
#include "benchs/common/Options.h"
#include "benchs/common/Report.h"
#include "benchs/common/Timing.h"
#include "benchs/metric_space/MetricData.h"
#include "faiss_bits/many/GpuIndexBitsMetricSpaceShards.h"
#include "faiss_bits/metric_space/GpuIndexBitsListOfClusters.h"
#include "faiss_bits/metric_space/IndexListOfClusters.h"

namespace faiss_bits::bench {
namespace {

using faiss::RangeSearchResult;
using gpu::GpuIndexBitsListOfClusters;
using gpu::GpuIndexBitsMetricSpaceShards;
using gpu::RangeStages;

struct Settings {
    std::vector<int64_t> queries = {2000};
    std::vector<double> shares = {0.0001, 0.001, 0.01};
    /// 1% of a tenth, a fifth and a half of the vectors too.
    std::vector<int64_t> sizes = {10, 5, 2};
    std::vector<int64_t> shards = {2, 4};
    int64_t devices = 1;
    int64_t cpuThreads = 8; ///< 0: no search on the CPU
    bool peers = true;
};

struct StagesOf {
    RangeStages stages;
    const char* name;
};

constexpr StagesOf kStages[] = {
        {RangeStages::One, "1"},
        {RangeStages::OneAndAHalf, "1.5"},
        {RangeStages::Two, "2"}};

/// What is the same for the rows of a cell.
struct Cell {
    std::string data;
    idx_t n;
    int d;
    idx_t q;
    double share;
    float radius;
};

class StagesBench {
   public:
    StagesBench(const Options& options, const Settings& settings)
            : settings_(settings),
              budget_(options.maxSeconds),
              report_(options.out,
                      collectMeta(options, measureReadBandwidth())) {
        const int64_t most = *std::max_element(
                settings.shards.begin(), settings.shards.end());
        for (int64_t i = 0; i < most; ++i) {
            resources_.push_back(
                    std::make_unique<faiss::gpu::StandardGpuResources>());
            resources_.back()->setTempMemory(size_t(1) << 30);
        }
    }

    void run(const MetricData& data) {
        for (const int64_t size : settings_.sizes) {
            runSize(data, data.n() / size, {0.01});
        }
        runSize(data, data.n(), settings_.shares);
    }

    int finish() const {
        std::printf(
                "%zu rows, %.0f s, %d wrong\n",
                report_.size(),
                budget_.seconds(),
                wrong_);
        return wrong_ == 0 ? 0 : 1;
    }

   private:
    void runSize(
            const MetricData& data,
            idx_t n,
            const std::vector<double>& shares) {
        if (budget_.isSpent()) {
            std::printf("--max-seconds is spent\n");
            return;
        }
        const std::vector<float> radii =
                radiiOfShares(data, Metric::L2, n, shares);
        GpuIndexBitsListOfClusters index(resources_[0].get(), data.d);
        index.add(n, data.vectors.data());
        index.build();
        std::vector<std::unique_ptr<GpuIndexBitsMetricSpaceShards>> many;
        gpu::GpuIndexBitsManyConfig config;
        config.usePeerAccess = settings_.peers;
        for (const int64_t shards : settings_.shards) {
            many.push_back(std::make_unique<GpuIndexBitsMetricSpaceShards>(
                    places(int(shards)), &index, config));
        }
        for (size_t s = 0; s < shares.size(); ++s) {
            for (const int64_t q : settings_.queries) {
                const Cell cell{
                        data.name,
                        n,
                        data.d,
                        std::min<idx_t>(q, data.numQueries()),
                        shares[s],
                        radii[s]};
                want_.reset();
                onDevices(cell, data, index, "one device", 1);
                for (auto& shards : many) {
                    for (const StagesOf& of : kStages) {
                        shards->stages = of.stages;
                        onDevices(
                                cell, data, *shards, of.name, shards->count());
                    }
                }
                if (settings_.cpuThreads > 0 && shares[s] == 0.01) {
                    onCpu(cell, data, index);
                }
            }
        }
    }

    gpu::DeviceList places(int shards) const {
        gpu::DeviceList list;
        for (int i = 0; i < shards; ++i) {
            list.add(resources_[i].get(), int(i % settings_.devices));
        }
        return list;
    }

    template <class Index>
    void onDevices(
            const Cell& cell,
            const MetricData& data,
            Index& index,
            const char* stages,
            int shards) {
        const auto search = [&] {
            auto result = std::make_unique<RangeSearchResult>(cell.q);
            index.range_search(
                    cell.q, data.queries.data(), cell.radius, result.get());
            return result;
        };
        index.resetDistances();
        auto got = search();
        const double evaluations = double(index.numDistances());
        check(cell, stages, shards, std::move(got));
        TimingMode mode;
        mode.wallClock = true;
        mode.leastRepeats = 5;
        mode.fewMs = 200;
        const Measured time = timeCall([&](int) { search(); }, mode);
        addRow(cell, "gpu", stages, shards, 0, time.ms, evaluations);
    }

    void onCpu(
            const Cell& cell,
            const MetricData& data,
            const GpuIndexBitsListOfClusters& index) {
        IndexListOfClusters cpu(cell.d);
        index.copyTo(&cpu);
        const int before = omp_get_max_threads();
        const int threads =
                int(std::min<int64_t>(settings_.cpuThreads, before));
        omp_set_num_threads(threads);
        cpu.resetDistances();
        auto got = std::make_unique<RangeSearchResult>(cell.q);
        const auto start = std::chrono::steady_clock::now();
        cpu.range_search(cell.q, data.queries.data(), cell.radius, got.get());
        const double ms = std::chrono::duration<double, std::milli>(
                                  std::chrono::steady_clock::now() - start)
                                  .count();
        omp_set_num_threads(before);
        check(cell, "cpu", 0, std::move(got));
        addRow(cell,
               "cpu",
               "openmp",
               0,
               threads,
               ms,
               double(cpu.numDistances()));
    }

    /// All answers of a cell are those of one device, bit for bit.
    void check(
            const Cell& cell,
            const char* stages,
            int shards,
            std::unique_ptr<RangeSearchResult> got) {
        if (!want_) {
            want_ = std::move(got);
            return;
        }
        const size_t nq = want_->nq;
        const size_t total = want_->lims[nq];
        const auto same = [](const auto* a, const auto* b, size_t count) {
            return count == 0 || std::memcmp(a, b, count * sizeof(*a)) == 0;
        };
        if (!same(got->lims, want_->lims, nq + 1) ||
            !same(got->labels, want_->labels, total) ||
            !same(got->distances, want_->distances, total)) {
            std::printf(
                    "WRONG: %s stages, %d shards, n = %lld, share %g\n",
                    stages,
                    shards,
                    (long long)cell.n,
                    cell.share);
            ++wrong_;
        }
    }

    void addRow(
            const Cell& cell,
            const char* where,
            const char* stages,
            int shards,
            int threads,
            double ms,
            double evaluations) {
        const int64_t devices = std::min<int64_t>(shards, settings_.devices);
        const size_t results = want_->lims[want_->nq];
        const double share = evaluations / (double(cell.n) * double(cell.q));
        Row row;
        row.text("bench", "metric_stages")
                .text("method", "faiss_bits")
                .text("index", "list_of_clusters")
                .text("where", where)
                .text("stages", stages)
                .integer("shards", shards)
                .integer("devices", devices)
                .integer("peers", devices > 1 && settings_.peers)
                .integer("threads", threads)
                .text("data", cell.data)
                .text("metric", "L2")
                .integer("n", cell.n)
                .integer("d", cell.d)
                .integer("q", cell.q)
                .number("selectivity", cell.share)
                .number("radius", cell.radius)
                .number("ms", ms)
                .integer("results", int64_t(results))
                .number("evaluations", share);
        report_.add(row);
        std::printf(
                "%5.0fs %-10s n=%-8lld q=%-6lld %.4f %s %-10s %d on %lld "
                "%10.4f ms %9zu results %.4f of n\n",
                budget_.seconds(),
                cell.data.c_str(),
                (long long)cell.n,
                (long long)cell.q,
                cell.share,
                where,
                stages,
                shards,
                (long long)devices,
                ms,
                results,
                share);
        std::fflush(stdout);
    }

    Settings settings_;
    Budget budget_;
    Report report_;
    std::vector<std::unique_ptr<faiss::gpu::StandardGpuResources>> resources_;
    std::unique_ptr<RangeSearchResult> want_;
    int wrong_ = 0;
};

int runMain(int argc, char** argv) {
    Settings settings;
    std::vector<std::string> files;
    int64_t clustered = 1000000;
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
            {{"--data",
              "as of bench_metric_space",
              [&](const std::string& v) { files = splitList(v); }},
             {"--clustered",
              "so many vectors of 16 dimensions around 1,000 centers (1000000; "
              "0: none)",
              number(clustered)},
             {"--qs", "queries a call (2000)", numbers(settings.queries)},
             {"--sizes",
              "1% of a tenth, a fifth, a half of the vectors too (10,5,2; 1: "
              "of all again)",
              numbers(settings.sizes)},
             {"--shards", "numbers of shards (2,4)", numbers(settings.shards)},
             {"--devices",
              "shards lie on them in turn (1)",
              number(settings.devices)},
             {"--cpu-threads",
              "of the search on the CPU at 1% (8; 0: none)",
              number(settings.cpuThreads)},
             {"--peers",
              "yes, or no: copies through the host",
              [&](const std::string& v) { settings.peers = v != "no"; }}});
    StagesBench bench(options, settings);
    constexpr uint64_t kSeed = 1;
    for (const std::string& spec : files) {
        bench.run(readMetricData(spec, kSeed));
    }
    if (clustered > 0) {
        bench.run(clusteredData(clustered, 16, kSeed));
    }
    return bench.finish();
}

} // namespace
} // namespace faiss_bits::bench

int main(int argc, char** argv) {
    using namespace faiss_bits::bench;
    return runProgram(argc, argv, runMain);
}
