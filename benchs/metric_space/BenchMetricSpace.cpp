/// Times range searches by List of Clusters, SSS and brute force: group by
/// group and as Barrientos et al. 2012 on the GPU, sequential and OpenMP on the
/// CPU. benchs/README.md says how.

#include <string>
#include <vector>

#include "benchs/common/Options.h"
#include "benchs/metric_space/MetricBench.h"

namespace faiss_bits::bench {
namespace {

int runMain(int argc, char** argv) {
    MetricSettings grid;
    std::vector<std::string> files;
    int64_t clustered = 100000;
    std::vector<int64_t> clusteredDims = {16};
    bool withFigures = true;
    int64_t copies = 0;
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
              "so many vectors around 1,000 centers (100000; 0: none)",
              [&](const std::string& v) {
                  clustered = parseNumbers(v).front();
              }},
             {"--clustered-ds",
              "of so many dimensions (16)",
              numbers(clusteredDims)},
             {"--qs", "queries a call (32,10000)", numbers(grid.queries)},
             {"--metrics",
              "of L2,L1,Linf (L2)",
              [&](const std::string& v) { grid.metrics = splitList(v); }},
             {"--cpu-queries",
              "cells of no more than so many run on the CPU too (32)",
              [&](const std::string& v) {
                  grid.cpuQueries = parseNumbers(v).front();
              }},
             {"--shares",
              "of all pairs within the radius (0.0001,0.001,0.01)",
              [&](const std::string& v) { grid.shares = parseReals(v); }},
             {"--bucket-size",
              "of List of Clusters (64)",
              [&](const std::string& v) {
                  grid.indexes.bucketSize = int(parseNumbers(v).front());
              }},
             {"--copies",
              "so many vectors, jittered copies of those of --data, in place "
              "of "
              "these",
              [&](const std::string& v) { copies = parseNumbers(v).front(); }},
             {"--way",
              "of searches group by group: auto (default), lists or warps, "
              "of which nothing else is timed",
              [&](const std::string& v) { grid.way = wayNamed(v); }},
             {"--profile",
              "on: one search a cell between marks, for metric_transactions.py",
              [&](const std::string& v) { grid.profile = v == "on"; }},
             {"--figures",
              "on (default): numbers of pivots and of vectors too; off",
              [&](const std::string& v) { withFigures = v == "on"; }}});
    // Figure 2 and Table II of the paper.
    MetricSettings pivots = grid;
    pivots.queries = {1000};
    pivots.shares = {0.001};
    pivots.cpuQueries = 0;
    pivots.indexes.alphas = {};
    pivots.indexes.pivots = {1, 2, 4, 8, 16, 32, 64};
    MetricSettings sizes = grid;
    sizes.queries = {32};
    sizes.shares = {0.01};
    sizes.parts = {2, 4, 8};

    MetricBench bench(options);
    const auto runAll = [&](const MetricData& data) {
        bench.run(data, grid);
        if (withFigures) {
            bench.run(data, pivots);
            bench.run(data, sizes);
        }
    };
    for (const std::string& spec : files) {
        const MetricData data = readMetricData(spec, kSeed);
        // Of points some millimetres apart on surfaces of metres.
        constexpr float kDeviation = 0.005f;
        runAll(copies > 0 ? jitteredCopies(data, copies, kDeviation, kSeed)
                          : data);
    }
    for (const int64_t d : clusteredDims) {
        if (clustered > 0) {
            runAll(clusteredData(clustered, int(d), kSeed));
        }
    }
    return bench.isRight() ? 0 : 1;
}

} // namespace
} // namespace faiss_bits::bench

int main(int argc, char** argv) {
    using namespace faiss_bits::bench;
    return runProgram(argc, argv, runMain);
}
