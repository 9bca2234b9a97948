#include "benchs/cpu/GemmHeap.h"

#include <algorithm>
#include <chrono>
#include <limits>
#include <memory>
#include <utility>
#include <vector>

#include <cblas.h>

namespace faiss_bits::bench {

namespace {

constexpr size_t kMostMatrixBytes = size_t(1) << 30;

void multiply(
        idx_t m,
        idx_t n,
        int d,
        const float* a,
        const float* b,
        float* c) {
    cblas_sgemm(
            CblasRowMajor,
            CblasNoTrans,
            CblasTrans,
            int(m),
            int(n),
            d,
            -2,
            a,
            d,
            b,
            d,
            0,
            c,
            int(n));
}

void multiply(
        idx_t m,
        idx_t n,
        int d,
        const double* a,
        const double* b,
        double* c) {
    cblas_dgemm(
            CblasRowMajor,
            CblasNoTrans,
            CblasTrans,
            int(m),
            int(n),
            d,
            -2,
            a,
            d,
            b,
            d,
            0,
            c,
            int(n));
}

/// Memory that is not cleared and grows only.
template <class T>
struct Buffer {
    std::unique_ptr<T[]> data;
    size_t size = 0;
    T* atLeast(size_t wanted) {
        if (wanted > size) {
            data.reset();
            data.reset(new T[wanted]);
            size = wanted;
        }
        return data.get();
    }
};

template <class T>
struct Buffers {
    Buffer<T> queries, queryNorms, vectors, vectorNorms, matrix;
};

template <class T>
Buffers<T>& buffers() {
    static Buffers<T> all;
    return all;
}

class Stopwatch {
   public:
    /// Milliseconds since the last lap.
    double lap() {
        const auto now = std::chrono::steady_clock::now();
        const double ms =
                std::chrono::duration<double, std::milli>(now - last_).count();
        last_ = now;
        return ms;
    }

   private:
    std::chrono::steady_clock::time_point last_ =
            std::chrono::steady_clock::now();
};

template <class T>
void collect(
        idx_t count,
        int d,
        const T* rows,
        const idx_t* ids,
        int threads,
        T* out,
        T* norms) {
#pragma omp parallel for num_threads(threads)
    for (idx_t i = 0; i < count; ++i) {
        const T* row = rows + (ids ? ids[i] : i) * d;
        T sum = 0;
#pragma omp simd reduction(+ : sum)
        for (int j = 0; j < d; ++j) {
            sum += row[j] * row[j];
            out[i * d + j] = row[j];
        }
        norms[i] = sum;
    }
}

/// The k least of a row, best first.
template <class T>
void selectRow(
        idx_t n,
        const T* row,
        const idx_t* ids,
        idx_t k,
        std::vector<std::pair<T, idx_t>>& heap,
        T* outDistances,
        idx_t* outIds) {
    heap.clear();
    const idx_t first = std::min(k, n);
    for (idx_t j = 0; j < first; ++j) {
        heap.emplace_back(row[j], ids ? ids[j] : j);
    }
    std::make_heap(heap.begin(), heap.end());
    for (idx_t j = first; j < n; ++j) {
        if (row[j] < heap.front().first) {
            std::pop_heap(heap.begin(), heap.end());
            heap.back() = {row[j], ids ? ids[j] : j};
            std::push_heap(heap.begin(), heap.end());
        }
    }
    std::sort_heap(heap.begin(), heap.end());
    for (idx_t i = 0; i < k; ++i) {
        const bool isThere = i < first;
        outDistances[i] =
                isThere ? heap[i].first : std::numeric_limits<T>::max();
        outIds[i] = isThere ? heap[i].second : -1;
    }
}

} // namespace

template <class T>
GemmHeapTimes runGemmHeap(const GemmHeapProblem<T>& p) {
    const idx_t n = p.numVectors;
    const int d = p.d;
    const idx_t part = std::clamp<idx_t>(
            idx_t(kMostMatrixBytes / (sizeof(T) * std::max<idx_t>(1, n))),
            1,
            std::max<idx_t>(1, p.numQueries));
    Buffers<T>& b = buffers<T>();
    T* queries = b.queries.atLeast(p.numQueries * d);
    T* queryNorms = b.queryNorms.atLeast(p.numQueries);
    T* vectors = b.vectors.atLeast(n * d);
    T* vectorNorms = b.vectorNorms.atLeast(n);
    T* matrix = b.matrix.atLeast(part * n);

    GemmHeapTimes times;
    Stopwatch watch;
    collect(p.numQueries,
            d,
            p.queries,
            p.queryIds,
            p.threads,
            queries,
            queryNorms);
    collect(n, d, p.vectors, p.vectorIds, p.threads, vectors, vectorNorms);
    times.collect = watch.lap();
    for (idx_t from = 0; from < p.numQueries; from += part) {
        const idx_t rows = std::min(part, p.numQueries - from);
        multiply(rows, n, d, queries + from * d, vectors, matrix);
        times.gemm += watch.lap();
#pragma omp parallel for num_threads(p.threads)
        for (idx_t i = 0; i < rows; ++i) {
            T* row = matrix + i * n;
            const T norm = queryNorms[from + i];
#pragma omp simd
            for (idx_t j = 0; j < n; ++j) {
                row[j] += norm + vectorNorms[j];
            }
        }
        times.norms += watch.lap();
#pragma omp parallel num_threads(p.threads)
        {
            std::vector<std::pair<T, idx_t>> heap;
            heap.reserve(std::min(p.k, n));
#pragma omp for schedule(dynamic, 16)
            for (idx_t i = 0; i < rows; ++i) {
                selectRow(
                        n,
                        matrix + i * n,
                        p.vectorIds,
                        p.k,
                        heap,
                        p.outDistances + (from + i) * p.k,
                        p.outIds + (from + i) * p.k);
            }
        }
        times.heap += watch.lap();
    }
    return times;
}

template GemmHeapTimes runGemmHeap(const GemmHeapProblem<float>&);
template GemmHeapTimes runGemmHeap(const GemmHeapProblem<double>&);

} // namespace faiss_bits::bench
