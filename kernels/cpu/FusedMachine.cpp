#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <fstream>
#include <numeric>
#include <random>
#include <vector>

#include "kernels/common/Error.h"
#include "kernels/cpu/FusedMachineFile.h"
#include "kernels/cpu/FusedPlan.h"
#include "kernels/cpu/FusedTargets.h"

namespace faiss_bits {

namespace {

std::atomic<bool> isMeasured{false};

double secondsNow() {
    return std::chrono::duration<double>(
                   std::chrono::steady_clock::now().time_since_epoch())
            .count();
}

/// The shortest of `runs` runs of work().
template <class Work>
double shortest(int runs, const Work& work) {
    double best = 1e9;
    for (int i = 0; i < runs; ++i) {
        const double before = secondsNow();
        work();
        best = std::min(best, secondsNow() - before);
    }
    return best;
}

/// Size of a cache of the first core. The files of Linux come first: sysconf
/// counts the caches of the whole machine below some hypervisors.
double cacheBytes(int level, int sysconfName, double otherwise) {
    for (int index = 0; index < 8; ++index) {
        const std::string folder = "/sys/devices/system/cpu/cpu0/cache/index" +
                std::to_string(index);
        std::ifstream levelFile(folder + "/level"), sizeFile(folder + "/size");
        int found = 0;
        double size = 0;
        char unit = 0;
        if (levelFile >> found && found == level && sizeFile >> size) {
            sizeFile >> unit;
            return size * (unit == 'M' ? 1 << 20 : 1 << 10);
        }
    }
    const long bytes = sysconf(sysconfName);
    return bytes > 0 ? double(bytes) : otherwise;
}

/// Multiply-adds of the micro-kernel on packed blocks in the cache.
double measureOperations(int64_t target) {
    const auto common = fusedCommonKernels<float>(target);
    const auto kernels =
            fusedMetricKernels<float, FusedKernelMetric::Product>(target);
    const int depth = 192;
    const int rows = 4 * common.tileQueries;
    const idx_t columns = 8 * common.tileVectors;
    FusedBuffer<float> queries(rows * depth), vectors(columns * depth);
    std::fill_n(queries.get(), rows * depth, 1.0f);
    std::fill_n(vectors.get(), columns * depth, 1.0f);
    // Limits that nothing passes.
    std::vector<float> filters(rows + common.tileQueries, -1e30f);
    std::vector<FusedRowState> states(rows, FusedRowState::Below);
    FusedSink<float> sink;
    sink.filter = filters.data();
    sink.state = states.data();
    FusedTileJob<float> job;
    job.queries = queries.get();
    job.vectors = vectors.get();
    job.rows = rows;
    job.columns = columns;
    job.depth = job.depthBlock = depth;
    job.sink = &sink;
    const double operations = 2.0 * rows * double(columns) * depth;
    // About 0.1 ms a run with AVX-512; more runs for processors that take a
    // while to reach their speed.
    return operations / shortest(100, [&] { kernels.runTiles(job); });
}

/// A value of 4 bytes, from memory or the last cache, in order.
double measureValue(std::vector<uint64_t>& memory) {
    volatile uint64_t sink = 0;
    const double seconds = shortest(4, [&] {
        uint64_t sums[8] = {};
        for (size_t i = 0; i < memory.size(); i += 8) {
            for (int lane = 0; lane < 8; ++lane) {
                sums[lane] += memory[i + lane];
            }
        }
        sink = sink + std::accumulate(sums, sums + 8, uint64_t(0));
    });
    return seconds / (2.0 * double(memory.size()));
}

/// A walk on which every address depends on the value before, over twice the
/// cache of a core.
double measureAccess(std::vector<uint64_t>& memory, double cache) {
    constexpr size_t kLine = 8; // values
    size_t lines = 1;
    while (lines * 64 < 2 * size_t(cache) &&
           2 * lines * kLine <= memory.size()) {
        lines *= 2;
    }
    std::vector<uint32_t> order(lines);
    std::iota(order.begin(), order.end(), 0);
    std::shuffle(order.begin(), order.end(), std::mt19937(1));
    for (size_t i = 0; i < lines; ++i) {
        memory[order[i] * kLine] = order[(i + 1) % lines] * kLine;
    }
    volatile uint64_t sink = 0;
    const size_t steps = lines;
    const double seconds = shortest(6, [&] {
        uint64_t place = order[0] * kLine;
        for (size_t i = 0; i < steps; ++i) {
            place = memory[place];
        }
        sink = sink + place;
    });
    return seconds / double(steps);
}

FusedMachine measure() {
    FusedMachine machine;
    machine.cacheBytes = cacheBytes(2, _SC_LEVEL2_CACHE_SIZE, 512.0 * 1024);
    machine.sharedBytes = cacheBytes(3, _SC_LEVEL3_CACHE_SIZE, 8192.0 * 1024);
    // The best, whatever a caller forces: constants are those of the machine.
    const int64_t target = fusedTargetOf(fusedTargets().front());
    machine.lanes = fusedCommonKernels<float>(target).lanes;
    machine.operationsPerSecond = measureOperations(target);
    std::vector<uint64_t> memory((size_t(32) << 20) / sizeof(uint64_t), 1);
    machine.secondsPerValue = measureValue(memory);
    machine.secondsPerAccess = measureAccess(memory, machine.cacheBytes);
    return machine;
}

/// The next process measures again where they cannot be kept: no reason for a
/// search to fail.
void keep(const std::string& file, const FusedMachine& machine) {
    try {
        writeFusedMachine(file, machine);
    } catch (const Error& error) {
        std::fprintf(
                stderr,
                "faiss_bits: warning: %s; going on with the constants "
                "measured now\n",
                error.what());
    }
}

/// From the file that the environment names; measured, and written there, if
/// there is none yet.
FusedMachine readOrMeasure() {
    FusedMachine machine;
    const std::string file = fusedMachineFile();
    if (file.empty() || !readFusedMachine(file, machine)) {
        machine = measure();
        if (!file.empty()) {
            keep(file, machine);
        }
    }
    isMeasured = true;
    return machine;
}

} // namespace

const FusedMachine& fusedMachine() {
    static const FusedMachine machine = readOrMeasure();
    return machine;
}

bool fusedMachineIsMeasured() {
    return isMeasured;
}

} // namespace faiss_bits
