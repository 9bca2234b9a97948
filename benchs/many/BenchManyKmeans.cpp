/// Times k-means of FAISS's Clustering with an index on several devices that
/// finds the nearest centroids, beside one device's. benchs/README.md says how.

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <memory>
#include <vector>

#include <faiss/Clustering.h>

#include "benchs/common/DeviceData.h"
#include "benchs/common/Options.h"
#include "benchs/common/Report.h"
#include "benchs/common/Timing.h"
#include "benchs/many/FaissMany.h"
#include "benchs/many/ManyPlaces.h"
#include "faiss_bits/cluster/GpuBitsClustering.h"

namespace faiss_bits::bench {
namespace {

struct Shapes : ManySettings {
    int64_t n = 1 << 20;
    int64_t d = 128;
    int64_t k = 4096;
    int64_t niter = 10;
    int64_t runs = 2;
};

/// What a run has made, and in which time.
struct Trained {
    double ms = 0;
    double searchMs = 0; ///< of the assignment, as the clustering says
    std::vector<float> centroids;
    std::vector<faiss::ClusteringIterationStats> stats;
};

class ManyKmeansBench {
   public:
    ManyKmeansBench(const Options& options, const Shapes& shapes)
            : options_(options),
              shapes_(shapes),
              budget_(options.maxSeconds),
              report_(options.out,
                      collectMeta(options, measureReadBandwidth())),
              places_(shapes),
              vectors_(download(randomVectors(shapes.n, shapes.d, 1))) {}

    int run() {
        const std::string kind = shapes_.kinds.front();
        for (const int64_t parts : shapes_.parts) {
            const auto index = places_.ours(kind, int(parts), shapes_.d);
            race("faiss_bits", kind, int(parts), [&](int niter) {
                return overIndex(*index, niter);
            });
        }
        race("faiss_bits_clustering", kind, 1, [&](int niter) {
            return onOneDevice(niter);
        });
        for (const int64_t parts : shapes_.parts) {
            if (options_.wants("faiss")) {
                const FaissMany faiss = faissOverFlat(
                        kind == "shards",
                        places_.list(int(parts)),
                        places_.resources(),
                        int(shapes_.d),
                        nullptr,
                        0);
                faiss::Index& index =
                        parts > 1 ? *faiss.index : *faiss.owned.front();
                race("faiss", kind, int(parts), [&](int niter) {
                    return overIndex(index, niter);
                });
            }
        }
        return finishBench(report_, budget_, wrong_);
    }

   private:
    /// Of all vectors, whatever FAISS would leave out or warn of.
    faiss::ClusteringParameters parameters(int niter) const {
        faiss::ClusteringParameters parameters;
        parameters.niter = niter;
        parameters.min_points_per_centroid = 1;
        parameters.max_points_per_centroid =
                int((shapes_.n + shapes_.k - 1) / shapes_.k);
        return parameters;
    }

    template <class Clustering, class Call>
    static Trained timed(Clustering& clustering, const Call& train) {
        BITS_CUDA_CHECK(cudaDeviceSynchronize());
        const auto begin = std::chrono::steady_clock::now();
        train();
        const std::chrono::duration<double, std::milli> time =
                std::chrono::steady_clock::now() - begin;
        Trained made;
        made.ms = time.count();
        made.stats = clustering.iteration_stats;
        made.searchMs = 1e3 * made.stats.back().time_search;
        made.centroids = clustering.centroids;
        return made;
    }

    Trained overIndex(faiss::Index& index, int niter) const {
        faiss::Clustering clustering(
                int(shapes_.d), int(shapes_.k), parameters(niter));
        return timed(clustering, [&] {
            clustering.train(shapes_.n, vectors_.data(), index);
        });
    }

    /// Ours, all of which is on one device.
    Trained onOneDevice(int niter) const {
        gpu::GpuBitsClustering clustering(
                places_.first(),
                int(shapes_.d),
                int(shapes_.k),
                parameters(niter),
                0);
        return timed(clustering, [&] {
            clustering.train(shapes_.n, vectors_.data());
        });
    }

    /// The least time of some runs, after one iteration to warm up.
    template <class Call>
    void race(
            const char* method,
            const std::string& kind,
            int parts,
            const Call& call) {
        if (budget_.isSpent()) {
            std::printf("--max-seconds is spent: %s left out\n", method);
            return;
        }
        call(1);
        Trained best;
        for (int64_t run = 0; run < shapes_.runs; ++run) {
            Trained made = call(int(shapes_.niter));
            check(method, parts, made);
            if (run == 0 || made.ms < best.ms) {
                best = std::move(made);
            }
        }
        Row row =
                places_.row("many_kmeans", method, "flat", kind, parts, "host");
        row.integer("n", shapes_.n)
                .integer("d", shapes_.d)
                .integer("k", shapes_.k)
                .integer("niter", shapes_.niter)
                .number("ms", best.ms)
                .number("search_ms", best.searchMs)
                .number("objective", best.stats.back().obj);
        report_.add(row);
        std::printf(
                "%5.0fs %-21s %d on %d %10.2f ms, search %10.2f ms, objective "
                "%.9g\n",
                budget_.seconds(),
                method,
                parts,
                places_.devicesOf(parts),
                best.ms,
                best.searchMs,
                best.stats.back().obj);
        std::fflush(stdout);
    }

    /// FAISS's Clustering over our indexes makes the same bits every time: the
    /// objective of every iteration, and the centroids.
    void check(const std::string& method, int parts, const Trained& made) {
        if (method != "faiss_bits") {
            return;
        }
        if (want_.stats.empty()) {
            want_ = made;
            return;
        }
        bool isRight = made.stats.size() == want_.stats.size() &&
                made.centroids.size() == want_.centroids.size() &&
                std::memcmp(
                        made.centroids.data(),
                        want_.centroids.data(),
                        made.centroids.size() * sizeof(float)) == 0;
        for (size_t i = 0; isRight && i < made.stats.size(); ++i) {
            isRight = made.stats[i].obj == want_.stats[i].obj;
        }
        if (!isRight) {
            std::printf("WRONG: %s, %d parts\n", method.c_str(), parts);
            ++wrong_;
        }
    }

    const Options& options_;
    const Shapes& shapes_;
    Budget budget_;
    Report report_;
    ManyPlaces places_;
    std::vector<float> vectors_; ///< [n, d]
    Trained want_;               ///< of the first index
    int wrong_ = 0;
};

int runMain(int argc, char** argv) {
    Shapes shapes;
    shapes.kinds = {"replicas"};
    return runBench<ManyKmeansBench>(
            argc,
            argv,
            shapes,
            {numberOption("--n", "vectors (default: 2^20)", shapes.n),
             numberOption("--d", "dimensions", shapes.d),
             numberOption("--k", "clusters (4096)", shapes.k),
             numberOption("--niter", "iterations (10)", shapes.niter),
             numberOption("--runs", "the least counts (2)", shapes.runs)},
            {"faiss"});
}

} // namespace
} // namespace faiss_bits::bench

int main(int argc, char** argv) {
    using namespace faiss_bits::bench;
    return runProgram(argc, argv, runMain);
}
