/// Times GpuIndexBitsIVFFlat against GpuIndexIVFFlat. benchs/README.md says
/// how.

#include <algorithm>
#include <cstdio>
#include <memory>
#include <random>
#include <vector>

#include <faiss/gpu/GpuIndexIVFFlat.h>
#include <faiss/gpu/StandardGpuResources.h>

#include "benchs/common/DeviceData.h"
#include "benchs/common/Labels.h"
#include "benchs/common/Options.h"
#include "benchs/common/Report.h"
#include "benchs/common/Timing.h"
#include "faiss_bits/flat/GpuIndexBitsFlat.h"
#include "faiss_bits/ivf/GpuIndexBitsIVFFlat.h"

namespace faiss_bits::bench {
namespace {

/// Products of 16 bits on an H200, dense: what frac_peak is a part of.
constexpr double kPeakFlops = 790e12;
constexpr int kMostFaissProbes = 2048;

struct Settings {
    int64_t n = 1 << 20;
    int d = 128;
    std::vector<int64_t> nlists = {1024, 4096};
    std::vector<int64_t> nprobes = {8, 32, 128};
    std::vector<int64_t> qs = {1, 16, 128, 1024, 10240};
    std::vector<int64_t> ks = {10, 100, 1000};
    std::string data = "uniform";
};

/// Vectors around centers of which some are much more popular than others, or
/// uniform ones. All numbers of one seed.
std::vector<float> makeVectors(
        const Settings& s,
        int64_t count,
        uint64_t seed) {
    constexpr int kCenters = 2000;
    std::mt19937 ofCenters(77);
    std::uniform_real_distribution<float> uniform(0.0f, 1.0f);
    std::vector<float> centers(size_t(kCenters) * s.d);
    for (float& value : centers) {
        value = uniform(ofCenters);
    }
    std::mt19937_64 random(seed);
    std::vector<float> vectors(size_t(count) * s.d);
    const bool isClustered = s.data == "clustered";
    for (int64_t i = 0; i < count; ++i) {
        const double at = double(random() >> 11) * 0x1p-53;
        const int center = int(at * at * kCenters);
        for (int c = 0; c < s.d; ++c) {
            const float value = float(random() >> 40) * 0x1p-24f;
            vectors[i * s.d + c] = !isClustered
                    ? value
                    : centers[size_t(center) * s.d + c] + 0.2f * (value - 0.5f);
        }
    }
    return vectors;
}

/// Two indexes with the same centroids and vectors, each with resources of its
/// own.
struct Indexes {
    faiss::gpu::StandardGpuResources ourResources;
    faiss::gpu::StandardGpuResources faissResources;
    gpu::GpuIndexBitsIVFFlat ours;
    std::unique_ptr<faiss::gpu::GpuIndexFlatL2> quantizer;
    std::unique_ptr<faiss::gpu::GpuIndexIVFFlat> faiss;

    Indexes(const Settings& s,
            int nlist,
            const std::vector<float>& vectors,
            bool withRival)
            : ours(&ourResources, s.d, nlist) {
        ours.train(s.n, vectors.data());
        ours.add(s.n, vectors.data());
        if (!withRival) {
            return;
        }
        std::vector<float> centroids(size_t(nlist) * s.d);
        ours.quantizer->reconstruct_n(0, nlist, centroids.data());
        quantizer = std::make_unique<faiss::gpu::GpuIndexFlatL2>(
                &faissResources, s.d);
        quantizer->add(nlist, centroids.data());
        faiss = std::make_unique<faiss::gpu::GpuIndexIVFFlat>(
                &faissResources, quantizer.get(), s.d, nlist);
        faiss->add(s.n, vectors.data());
    }
};

class IvfBench {
   public:
    IvfBench(const Options& options, const Settings& settings)
            : options_(options),
              settings_(settings),
              budget_(options.maxSeconds),
              report_(options.out,
                      collectMeta(options, measureReadBandwidth())) {}

    void run() {
        const int64_t mostQueries =
                *std::max_element(settings_.qs.begin(), settings_.qs.end());
        const auto vectors = makeVectors(settings_, settings_.n, 1);
        const auto queries = makeVectors(settings_, mostQueries, 2);
        queries_ = DeviceArray<float>(queries.size());
        BITS_CUDA_CHECK(cudaMemcpy(
                queries_.data(),
                queries.data(),
                queries.size() * sizeof(float),
                cudaMemcpyHostToDevice));
        for (int64_t nlist : settings_.nlists) {
            indexes_.reset();
            indexes_ = std::make_unique<Indexes>(
                    settings_, int(nlist), vectors, options_.wants("faiss"));
            for (int64_t nprobe : settings_.nprobes) {
                for (int64_t q : settings_.qs) {
                    for (int64_t k : settings_.ks) {
                        if (!budget_.isSpent()) {
                            runCell(int(nprobe), q, int(k));
                        }
                    }
                }
            }
        }
        std::printf(
                "%zu rows in %s, %.0f s, %d wrong\n",
                report_.size(),
                options_.out.c_str(),
                budget_.seconds(),
                wrong_);
    }

    bool isRight() const {
        return wrong_ == 0;
    }

   private:
    void runCell(int nprobe, int64_t q, int k) {
        distances_ = DeviceArray<float>(q * k);
        labels_ = DeviceArray<idx_t>(q * k);
        indexes_->ours.nprobe = nprobe;
        const int64_t pairs = pairsOf(nprobe, q);
        const Measured ours =
                measure("faiss_bits", indexes_->ours, nprobe, q, k, pairs);
        if (!indexes_->faiss || k > 2048 || nprobe > kMostFaissProbes) {
            return;
        }
        const auto found = downloadLabels(labels_, q * k);
        indexes_->faiss->nprobe = nprobe;
        const Measured theirs =
                measure("faiss", *indexes_->faiss, nprobe, q, k, pairs);
        std::printf("%64s %.2f times\n", "", theirs.ms / ours.ms);
        const double share =
                shareInBoth(found, downloadLabels(labels_, q * k), k);
        if (share < 0.99) {
            std::printf("WRONG: only %.4f of the labels in both\n", share);
            ++wrong_;
        }
    }

    /// Vectors in the lists of all queries.
    int64_t pairsOf(int nprobe, int64_t q) {
        DeviceArray<float> toLists(q * nprobe);
        DeviceArray<idx_t> lists(q * nprobe);
        indexes_->ours.quantizer->search(
                q, queries_.data(), nprobe, toLists.data(), lists.data());
        std::vector<int64_t> lengths(indexes_->ours.nlist);
        for (size_t l = 0; l < lengths.size(); ++l) {
            lengths[l] = indexes_->ours.getListLength(l);
        }
        int64_t pairs = 0;
        for (idx_t list : downloadLabels(lists, q * nprobe)) {
            pairs += list < 0 ? 0 : lengths[list];
        }
        return pairs;
    }

    Measured measure(
            const std::string& method,
            const faiss::Index& index,
            int nprobe,
            int64_t q,
            int k,
            int64_t pairs) {
        TimingMode mode;
        mode.wallClock = true;
        mode.before = [&] { flush_.enqueue(); };
        const Measured time = timeCall(
                [&](int) {
                    index.search(
                            q,
                            queries_.data(),
                            k,
                            distances_.data(),
                            labels_.data());
                },
                mode);
        const double flops = 2.0 * double(pairs) * settings_.d;
        report_.add(Row().text("bench", "ivf")
                            .text("method", method)
                            .text("index", "ivf_flat")
                            .text("data", settings_.data)
                            .integer("n", settings_.n)
                            .integer("d", settings_.d)
                            .integer("nlist", indexes_->ours.nlist)
                            .integer("nprobe", nprobe)
                            .integer("q", q)
                            .integer("k", k)
                            .integer("pairs", pairs)
                            .number("ms", time.ms)
                            .number("frac_peak",
                                    flops / (time.ms * 1e-3 * kPeakFlops)));
        std::printf(
                "%5.0fs %-10s nlist=%-5d nprobe=%-4d q=%-5lld k=%-5d "
                "%10.4f ms (%d)\n",
                budget_.seconds(),
                method.c_str(),
                int(indexes_->ours.nlist),
                nprobe,
                (long long)q,
                k,
                time.ms,
                time.repeats);
        std::fflush(stdout);
        return time;
    }

    const Options& options_;
    const Settings& settings_;
    Budget budget_;
    Report report_;
    CacheFlush flush_;
    std::unique_ptr<Indexes> indexes_;
    DeviceArray<float> queries_;
    DeviceArray<float> distances_;
    DeviceArray<idx_t> labels_;
    int wrong_ = 0;
};

int runMain(int argc, char** argv) {
    Settings settings;
    std::vector<int64_t> ns;
    std::vector<int64_t> ds;
    auto numbers = [](std::vector<int64_t>& list) {
        return [&list](const std::string& v) { list = parseNumbers(v); };
    };
    const Options options = parseOptions(
            argc,
            argv,
            {{"--n", "vectors (default: 2^20)", numbers(ns)},
             {"--d", "dimensions (default: 128)", numbers(ds)},
             {"--nlists", "lists", numbers(settings.nlists)},
             {"--nprobes", "lists of a query", numbers(settings.nprobes)},
             {"--qs", "queries a call", numbers(settings.qs)},
             {"--ks", "neighbours", numbers(settings.ks)},
             {"--data",
              "uniform (default) or clustered",
              [&](const std::string& v) { settings.data = v; }}});
    if (settings.data != "uniform" && settings.data != "clustered") {
        std::fprintf(stderr, "--data is '%s'\n", settings.data.c_str());
        return 2;
    }
    settings.n = ns.empty() ? settings.n : ns[0];
    settings.d = ds.empty() ? settings.d : int(ds[0]);
    IvfBench bench(options, settings);
    bench.run();
    return bench.isRight() ? 0 : 1;
}

} // namespace
} // namespace faiss_bits::bench

int main(int argc, char** argv) {
    using namespace faiss_bits::bench;
    return runProgram(argc, argv, runMain);
}
