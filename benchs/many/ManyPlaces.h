#pragma once

#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include <faiss/Index.h>
#include <faiss/gpu/StandardGpuResources.h>

#include "benchs/common/DeviceData.h"
#include "benchs/common/Options.h"
#include "benchs/common/Report.h"
#include "benchs/common/Timing.h"
#include "faiss_bits/many/DeviceList.h"

/// What the benches of several devices have in common.
namespace faiss_bits::bench {

/// Of --parts, --devices, --kinds and --peers.
struct ManySettings {
    std::vector<int64_t> parts = {1, 2};
    int64_t devices = 1;
    std::vector<std::string> kinds = {"shards", "replicas"};
    bool peers = true;

    /// The options that set these, which must not go before them.
    std::vector<ExtraOption> options();

    /// Exits with 2 for a number of parts or devices, or a kind, that is none.
    void require() const;
};

/// An option that sets one number, or a list of them.
ExtraOption numberOption(const char* name, const char* help, int64_t& value);
ExtraOption numbersOption(
        const char* name,
        const char* help,
        std::vector<int64_t>& values);

/// Devices and resources for the parts of an index.
class ManyPlaces {
   public:
    /// settings outlive it.
    explicit ManyPlaces(const ManySettings& settings);

    /// Of so many parts, on the devices in turn.
    gpu::DeviceList list(int parts) const;

    /// Devices that so many parts are on.
    int devicesOf(int parts) const;

    /// Of part 0 on the first device: of one index too.
    faiss::gpu::StandardGpuResources* first() const {
        return resources_.front().get();
    }

    /// Of each part.
    const std::vector<std::unique_ptr<faiss::gpu::StandardGpuResources>>&
    resources() const {
        return resources_;
    }

    gpu::GpuIndexBitsManyConfig config() const;

    /// Ours by L2, empty: GpuIndexBitsFlat for one part, else
    /// GpuIndexBitsShards or GpuIndexBitsReplicas.
    std::unique_ptr<faiss::Index> ours(
            const std::string& kind,
            int parts,
            int64_t d) const;

    /// The fields that say what was searched, and where.
    Row row(const char* bench,
            const std::string& method,
            const char* index,
            const std::string& kind,
            int parts,
            const char* arrays) const;

   private:
    const ManySettings& settings_;
    std::vector<std::unique_ptr<faiss::gpu::StandardGpuResources>> resources_;
};

/// Says how a bench ended. Its exit status: 0 without wrong answers.
int finishBench(const Report& report, const Budget& budget, int wrong);

/// call(q, k) for all of shapes.qs and shapes.ks, until time is spent: then it
/// says that the rest of `what` is left out.
template <class Shapes, class Call>
void forEachCell(
        const Shapes& shapes,
        const Budget& budget,
        const std::string& what,
        const Call& call) {
    for (const int64_t q : shapes.qs) {
        for (const int64_t k : shapes.ks) {
            if (budget.isSpent()) {
                std::printf(
                        "--max-seconds is spent: %s left out\n", what.c_str());
                return;
            }
            call(q, k);
        }
    }
}

/// Reads the options of `shapes`, which is a ManySettings, and `own`, and runs
/// Bench(options, shapes).
template <class Bench, class Shapes>
int runBench(
        int argc,
        char** argv,
        Shapes& shapes,
        const std::vector<ExtraOption>& own,
        const std::vector<std::string>& rivals) {
    std::vector<ExtraOption> all = shapes.options();
    all.insert(all.end(), own.begin(), own.end());
    const Options options = parseOptions(argc, argv, all);
    shapes.require();
    options.requireRivals(rivals);
    return Bench(options, shapes).run();
}

/// Uniform vectors [rows, d] on the device; the same for the same seed.
DeviceArray<float> randomVectors(int64_t rows, int64_t d, int seed);

/// To the host.
std::vector<float> download(const DeviceArray<float>& array);

} // namespace faiss_bits::bench
