/// What exact flat searches take of the GPU's memory beside the index.
/// benchs/README.md says how.

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>

#include <faiss/gpu/GpuIndexFlat.h>
#include <faiss/gpu/StandardGpuResources.h>

#include "benchs/FlatData.h"
#include "benchs/common/DeviceData.h"
#include "benchs/common/Options.h"
#include "benchs/common/Report.h"
#include "benchs/common/Timing.h"
#include "faiss_bits/flat/GpuIndexBitsFlat.h"
#include "kernels/common/CudaCheck.h"

namespace faiss_bits::bench {
namespace {

constexpr double kMiB = 1 << 20;

/// Searches before one is looked at: an index makes its 16-bit copy in one of
/// the first.
constexpr int kSearchesBefore = 6;

/// FAISS's resources, which note what is asked of them.
class NotedResources : public faiss::gpu::StandardGpuResourcesImpl {
   public:
    struct Bytes {
        size_t kept = 0;     ///< vectors, copies, what outlives a search
        size_t reserved = 0; ///< for temporary memory
        size_t scratch = 0;  ///< temporary, in use
        size_t overflow = 0; ///< of scratch, beyond what is reserved
        size_t mostScratch = 0;
        size_t mostOverflow = 0;
    };

    void* allocMemory(const faiss::gpu::AllocRequest& request) override {
        void* memory = StandardGpuResourcesImpl::allocMemory(request);
        if (memory) {
            const std::lock_guard<std::mutex> lock(mutex_);
            // What temporary memory cannot give is asked for once more, by the
            // class below, as an overflow: that request was noted first.
            if (live_.emplace(memory, request).second) {
                count(request, true);
            }
        }
        return memory;
    }

    void deallocMemory(int device, void* memory) override {
        {
            const std::lock_guard<std::mutex> lock(mutex_);
            const auto found = live_.find(memory);
            if (found != live_.end()) {
                count(found->second, false);
                live_.erase(found);
            }
        }
        StandardGpuResourcesImpl::deallocMemory(device, memory);
    }

    /// Now; the most since startAgain().
    Bytes bytes() {
        const std::lock_guard<std::mutex> lock(mutex_);
        return bytes_;
    }

    void startAgain() {
        const std::lock_guard<std::mutex> lock(mutex_);
        bytes_.mostScratch = bytes_.scratch;
        bytes_.mostOverflow = bytes_.overflow;
    }

   private:
    void count(const faiss::gpu::AllocRequest& request, bool comes) {
        using faiss::gpu::AllocType;
        const auto move = [&](size_t& bytes) {
            bytes = comes ? bytes + request.size : bytes - request.size;
        };
        if (request.type == AllocType::TemporaryMemoryBuffer) {
            move(bytes_.reserved);
        } else if (request.type == AllocType::TemporaryMemoryOverflow) {
            move(bytes_.scratch);
            move(bytes_.overflow);
        } else if (request.space == faiss::gpu::MemorySpace::Temporary) {
            move(bytes_.scratch);
        } else {
            move(bytes_.kept);
        }
        bytes_.mostScratch = std::max(bytes_.mostScratch, bytes_.scratch);
        bytes_.mostOverflow = std::max(bytes_.mostOverflow, bytes_.overflow);
    }

    std::mutex mutex_;
    std::unordered_map<void*, faiss::gpu::AllocRequest> live_;
    Bytes bytes_;
};

size_t freeMemory() {
    size_t free = 0;
    size_t total = 0;
    BITS_CUDA_CHECK(cudaMemGetInfo(&free, &total));
    return free;
}

/// The least free memory of the device while it lives, asked for all the time
/// by a thread of its own.
class LeastFree {
   public:
    LeastFree() : least_(freeMemory()), thread_([this] { watch(); }) {}
    ~LeastFree() {
        stop();
    }
    size_t stop() {
        ended_ = true;
        if (thread_.joinable()) {
            thread_.join();
        }
        return least_;
    }

   private:
    void watch() {
        while (!ended_) {
            least_ = std::min(least_, freeMemory());
        }
    }

    size_t least_;
    std::atomic<bool> ended_{false};
    std::thread thread_;
};

struct Cell {
    int d = 0;
    int64_t q = 0;
    int k = 0;
};

class MemoryBench {
   public:
    MemoryBench(const Options& options, int64_t n, size_t tempBytes)
            : n_(n),
              tempBytes_(tempBytes),
              budget_(options.maxSeconds),
              report_(options.out,
                      collectMeta(options, measureReadBandwidth())),
              withFaiss_(options.wants("faiss_flat")) {}

    void run(const std::vector<Cell>& cells) {
        for (const Cell& cell : cells) {
            if (budget_.isSpent()) {
                std::printf("--max-seconds is spent\n");
                break;
            }
            DeviceArray<float> vectors(n_ * cell.d);
            fillFlatData(
                    vectors.data(), FlatData::Uniform, false, n_, cell.d, 1);
            queries_ = DeviceArray<float>();
            queries_ = DeviceArray<float>(cell.q * cell.d);
            fillFlatData(
                    queries_.data(),
                    FlatData::Uniform,
                    true,
                    cell.q,
                    cell.d,
                    2);
            measure(cell, "faiss_bits", vectors.data());
            if (withFaiss_) {
                measure(cell, "faiss_flat", vectors.data());
            }
        }
    }

   private:
    void measure(
            const Cell& cell,
            const std::string& method,
            const float* vectors) {
        const auto resources = std::make_shared<NotedResources>();
        resources->setPinnedMemory(0);
        if (tempBytes_ > 0) {
            resources->setTempMemory(tempBytes_);
        }
        std::unique_ptr<faiss::gpu::GpuIndexFlat> index;
        gpu::GpuIndexBitsFlat* ours = nullptr;
        if (method == "faiss_bits") {
            auto made = std::make_unique<gpu::GpuIndexBitsFlat>(
                    resources, cell.d, faiss::METRIC_L2);
            ours = made.get();
            index = std::move(made);
        } else {
            index = std::make_unique<faiss::gpu::GpuIndexFlat>(
                    resources, cell.d, faiss::METRIC_L2);
        }
        index->add(n_, vectors);
        const size_t stored = resources->bytes().kept;
        DeviceArray<float> distances(cell.q * cell.k);
        DeviceArray<idx_t> labels(cell.q * cell.k);
        const auto search = [&] {
            index->search(
                    cell.q,
                    queries_.data(),
                    cell.k,
                    distances.data(),
                    labels.data());
            BITS_CUDA_CHECK(cudaDeviceSynchronize());
        };
        for (int i = 0; i < (ours ? kSearchesBefore : 1); ++i) {
            search();
        }
        const size_t planned = ours
                ? ours->plan(cell.q, cell.k, nullptr, false).scratchBytes
                : size_t(0);
        const auto before = resources->bytes();
        const size_t freeBefore = freeMemory();
        resources->startAgain();
        LeastFree watched;
        search();
        const size_t leastFree = watched.stop();
        const auto after = resources->bytes();
        const size_t deviceMore =
                freeBefore > leastFree ? freeBefore - leastFree : 0;

        Row row;
        row.text("bench", "flat_memory")
                .text("method", method)
                .integer("n", n_)
                .integer("d", cell.d)
                .integer("q", cell.q)
                .integer("k", cell.k)
                .text("metric", "L2")
                .text("dtype", "float32")
                .number("stored_mib", double(stored) / kMiB)
                .number("copy_mib", double(before.kept - stored) / kMiB)
                .number("reserved_mib", double(after.reserved) / kMiB)
                .number("scratch_mib", double(after.mostScratch) / kMiB)
                .number("overflow_mib", double(after.mostOverflow) / kMiB)
                .number("device_mib", double(deviceMore) / kMiB);
        if (ours) {
            row.number("planned_mib", double(planned) / kMiB);
        }
        report_.add(row);
        std::printf(
                "%-10s n=%lld d=%-3d q=%-5lld k=%-4d stored %.0f, copy %.0f, "
                "reserved %.0f, scratch %.1f (planned %.1f, overflow %.1f), "
                "device %.1f MiB\n",
                method.c_str(),
                (long long)n_,
                cell.d,
                (long long)cell.q,
                cell.k,
                stored / kMiB,
                (before.kept - stored) / kMiB,
                after.reserved / kMiB,
                after.mostScratch / kMiB,
                planned / kMiB,
                after.mostOverflow / kMiB,
                deviceMore / kMiB);
        std::fflush(stdout);
    }

    int64_t n_;
    size_t tempBytes_;
    Budget budget_;
    Report report_;
    bool withFaiss_;
    DeviceArray<float> queries_;
};

int runMain(int argc, char** argv) {
    int64_t n = 1 << 20;
    std::vector<int64_t> ds = {128, 768};
    std::vector<int64_t> qs = {10240};
    std::vector<int64_t> ks = {10, 100, 1024};
    int64_t tempMiB = 0;
    auto numbers = [](std::vector<int64_t>& list) {
        return [&list](const std::string& v) { list = parseNumbers(v); };
    };
    const Options options = parseOptions(
            argc,
            argv,
            {{"--n",
              "vectors (default: 2^20)",
              [&](const std::string& v) { n = parseNumbers(v).at(0); }},
             {"--ds", "dimensions", numbers(ds)},
             {"--qs", "queries a call", numbers(qs)},
             {"--ks", "neighbours", numbers(ks)},
             {"--temp",
              "MiB of temporary memory (default: FAISS's, 1536)",
              [&](const std::string& v) { tempMiB = parseNumbers(v).at(0); }}});
    options.requireRivals({"faiss_flat"});
    std::vector<Cell> cells;
    for (int64_t d : ds) {
        for (int64_t q : qs) {
            for (int64_t k : ks) {
                cells.push_back({int(d), q, int(k)});
            }
        }
    }
    MemoryBench bench(options, n, size_t(tempMiB) << 20);
    bench.run(cells);
    return 0;
}

} // namespace
} // namespace faiss_bits::bench

int main(int argc, char** argv) {
    using namespace faiss_bits::bench;
    return runProgram(argc, argv, runMain);
}
