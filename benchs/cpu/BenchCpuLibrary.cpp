/// What bench_worker.py times on the side of C++, with plain C signatures.
/// Functions that return text return nullptr, or what went wrong; text is valid
/// until the thread's next call.

#include <cstdint>
#include <exception>
#include <memory>
#include <sstream>
#include <stdexcept>
#include <string>

#include <cblas.h>
#include <omp.h>

#include "benchs/cpu/GemmHeap.h"
#include "benchs/cpu/MachineLimits.h"
#include "faiss_bits/flat/IndexFusedFlat.h"
#include "kernels/cpu/Knn.h"
#include "kernels/cpu/Machine.h"
#include "kernels/cpu/Targets.h"

#define BENCH_EXPORT extern "C" __attribute__((visibility("default")))

namespace {

using namespace faiss_bits;
using namespace faiss_bits::bench;

thread_local std::string text;

/// Runs `body`; what it throws becomes the result.
template <class Body>
const char* guarded(const Body& body) {
    try {
        body();
        return nullptr;
    } catch (const std::exception& error) {
        text = error.what();
        return text.c_str();
    }
}

/// "L2", "IP", "cosine", "L1", "Linf", "Canberra", "BrayCurtis",
/// "JensenShannon", "Jaccard", or "Lp3" for p = 3.
struct MetricName {
    Metric ours = Metric::L2;
    faiss::MetricType theirs = faiss::METRIC_L2;
    float argument = 2;
    bool isInFaiss = true;

    explicit MetricName(const std::string& name) {
        if (name == "L2") {
            return;
        }
        if (name == "IP") {
            ours = Metric::InnerProduct;
            theirs = faiss::METRIC_INNER_PRODUCT;
        } else if (name == "cosine") {
            ours = Metric::Cosine;
            isInFaiss = false;
        } else if (name == "L1") {
            ours = Metric::L1;
            theirs = faiss::METRIC_L1;
        } else if (name == "Linf") {
            ours = Metric::Linf;
            theirs = faiss::METRIC_Linf;
        } else if (name == "Canberra") {
            ours = Metric::Canberra;
            theirs = faiss::METRIC_Canberra;
        } else if (name == "BrayCurtis") {
            ours = Metric::BrayCurtis;
            theirs = faiss::METRIC_BrayCurtis;
        } else if (name == "JensenShannon") {
            ours = Metric::JensenShannon;
            theirs = faiss::METRIC_JensenShannon;
        } else if (name == "Jaccard") {
            ours = Metric::Jaccard;
            isInFaiss = false;
        } else if (name.rfind("Lp", 0) == 0 && name.size() > 2) {
            ours = Metric::Lp;
            theirs = faiss::METRIC_Lp;
            argument = std::stof(name.substr(2));
        } else {
            throw std::invalid_argument(
                    "metric '" + name +
                    "' is none of L2, IP, cosine, L1, Linf, Canberra, "
                    "BrayCurtis, JensenShannon, Jaccard, Lp3 and so on");
        }
    }
};

template <class T>
cpu::KnnProblem<T> knnProblemOf(
        const char* metric,
        idx_t q,
        idx_t n,
        int d,
        idx_t k,
        const void* queries,
        const void* vectors,
        int threads,
        const char* variant) {
    const MetricName name(metric);
    cpu::KnnProblem<T> problem;
    problem.metric = name.ours;
    problem.metricArg = T(name.argument);
    problem.numQueries = q;
    problem.numVectors = n;
    problem.d = d;
    problem.k = k;
    problem.queries = static_cast<const T*>(queries);
    problem.vectors = static_cast<const T*>(vectors);
    problem.threads = threads;
    problem.choice.variant = cpu::variantOf(variant);
    return problem;
}

/// {"variant": ..., "plan": ..., "predicted_ms": {...}}; milliseconds.
std::string jsonOf(const cpu::Plan& plan) {
    std::ostringstream out;
    out << "{\"variant\": \"" << nameOf(plan.variant) << "\", \"plan\": \""
        << toString(plan) << "\", \"seconds\": " << plan.predictedSeconds
        << ", \"predicted_ms\": {";
    const char* separator = "";
    for (const auto& [variant, seconds] : plan.predictions) {
        out << separator << "\"" << nameOf(variant) << "\": " << 1e3 * seconds;
        separator = ", ";
    }
    out << "}}";
    return out.str();
}

} // namespace

/// k nearest by cpu::runKnn, for what the index does not know: `dtype` float64,
/// and cosine. `variant` is "auto" or another name of cpu::variantOf.
BENCH_EXPORT const char* benchCpuKnn(
        const char* dtype,
        const char* metric,
        int64_t q,
        int64_t n,
        int d,
        int64_t k,
        const void* queries,
        const void* vectors,
        int threads,
        const char* variant,
        void* outDistances,
        int64_t* outIds) {
    return guarded([&] {
        auto run = [&]<class T>(T* out) {
            auto problem = knnProblemOf<T>(
                    metric, q, n, d, k, queries, vectors, threads, variant);
            problem.outDistances = out;
            problem.outIds = outIds;
            cpu::runKnn(problem);
        };
        if (std::string(dtype) == "float64") {
            run(static_cast<double*>(outDistances));
        } else {
            run(static_cast<float*>(outDistances));
        }
    });
}

/// The plan of the same call as JSON into `*json`.
BENCH_EXPORT const char* benchCpuPlan(
        const char* dtype,
        const char* metric,
        int64_t q,
        int64_t n,
        int d,
        int64_t k,
        const void* queries,
        const void* vectors,
        int threads,
        const char* variant,
        const char** json) {
    return guarded([&] {
        auto plan = [&]<class T>(T) {
            return jsonOf(cpu::planKnn(knnProblemOf<T>(
                    metric, q, n, d, k, queries, vectors, threads, variant)));
        };
        text = std::string(dtype) == "float64" ? plan(double()) : plan(float());
        *json = text.c_str();
    });
}

/// `times`: collect, gemm, norms, heap in milliseconds.
BENCH_EXPORT const char* benchGemmHeap(
        const char* dtype,
        int64_t q,
        int64_t n,
        int d,
        int64_t k,
        const void* queries,
        const void* vectors,
        int threads,
        void* outDistances,
        int64_t* outIds,
        double times[4]) {
    return guarded([&] {
        auto run = [&]<class T>(T* out) {
            GemmHeapProblem<T> problem;
            problem.numQueries = q;
            problem.numVectors = n;
            problem.d = d;
            problem.k = k;
            problem.queries = static_cast<const T*>(queries);
            problem.vectors = static_cast<const T*>(vectors);
            problem.threads = threads;
            problem.outDistances = out;
            problem.outIds = outIds;
            return runGemmHeap(problem);
        };
        openblas_set_num_threads(threads);
        const GemmHeapTimes spent = std::string(dtype) == "float64"
                ? run(static_cast<double*>(outDistances))
                : run(static_cast<float*>(outDistances));
        times[0] = spent.collect;
        times[1] = spent.gemm;
        times[2] = spent.norms;
        times[3] = spent.heap;
    });
}

// ---- an index ---------------------------------------------------------------

/// Our index with a copy of `vectors`, into `*index`; where that copy lies, for
/// the others to read, into `*stored`.
BENCH_EXPORT const char* benchIndexNew(
        const char* metric,
        int64_t n,
        int d,
        const float* vectors,
        IndexFusedFlat** index,
        const float** stored) {
    return guarded([&] {
        const MetricName name(metric);
        auto made = std::make_unique<IndexFusedFlat>(
                d,
                name.isInFaiss ? name.theirs : faiss::METRIC_L2,
                name.theirs == faiss::METRIC_Lp ? name.argument : 0);
        made->add(n, vectors);
        *stored = made->get_xb();
        *index = made.release();
    });
}

BENCH_EXPORT void benchIndexFree(IndexFusedFlat* index) {
    delete index;
}

/// IndexFusedFlat::search with a variant, certified or in plain mode, or, where
/// the variant is nullptr, the search of the class that it comes from, FAISS's
/// own: over the same memory.
BENCH_EXPORT const char* benchIndexSearch(
        IndexFusedFlat* index,
        int64_t q,
        const float* queries,
        int64_t k,
        int threads,
        const char* variant,
        int plain,
        float* outDistances,
        int64_t* outIds) {
    return guarded([&] {
        omp_set_num_threads(threads);
        if (variant) {
            index->search_mode =
                    plain ? SearchMode::Plain : SearchMode::Certified;
            index->choice.variant = cpu::variantOf(variant);
            index->search(q, queries, k, outDistances, outIds);
        } else {
            openblas_set_num_threads(threads);
            index->faiss::IndexFlat::search(
                    q, queries, k, outDistances, outIds);
        }
    });
}

// ---- the machine -----------------------------------------------------------

/// GFLOP/s of multiply-adds in registers.
BENCH_EXPORT double benchFmaPeak(const char* dtype, int threads) {
    return std::string(dtype) == "float64" ? measureFmaPeak<double>(threads)
                                           : measureFmaPeak<float>(threads);
}

/// Milliseconds to read memory once.
BENCH_EXPORT double benchReading(const void* data, int64_t bytes, int threads) {
    return timeReading(data, size_t(bytes), threads);
}

/// Versions, instruction sets and the constants of the cost model, as JSON.
BENCH_EXPORT const char* benchAbout() {
    const cpu::Machine& machine = cpu::thisMachine();
    std::ostringstream out;
    out << "{\"faiss\": \"" << FAISS_VERSION_MAJOR << "." << FAISS_VERSION_MINOR
        << "." << FAISS_VERSION_PATCH << "\", \"blas\": \""
        << openblas_get_config() << "\", \"peak_target\": \"" << machineTarget()
        << "\", \"targets\": \"";
    const char* separator = "";
    for (const std::string& target : cpu::targetNames()) {
        out << separator << target;
        separator = " ";
    }
    out << "\", \"model\": {\"operations_per_second\": "
        << machine.operationsPerSecond
        << ", \"seconds_per_value\": " << machine.secondsPerValue
        << ", \"seconds_per_access\": " << machine.secondsPerAccess
        << ", \"cache_bytes\": " << machine.cacheBytes
        << ", \"shared_bytes\": " << machine.sharedBytes << "}}";
    text = out.str();
    return text.c_str();
}
