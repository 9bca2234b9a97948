#pragma once

#include <barrier>
#include <functional>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "tests/flat/IndexHarness.h"

/// Searches of one index in several threads, each on resources of its own.
namespace faiss_bits::test {

using gpu::SearchParametersBitsFlat;

inline constexpr int kThreads = 6;

/// One search, with its expected result, and memory on the device for it.
struct Job {
    Job(std::vector<float> x, int64_t d, int k)
            : queries(std::move(x)),
              q(int64_t(queries.size()) / d),
              k(k),
              onDevice(queries),
              distances(q * k),
              labels(q * k) {}

    void expect(const GpuIndexBitsFlat& index) {
        expected = searchOnHost(index, queries, k);
    }
    SearchOutput onHost(
            const GpuIndexBitsFlat& index,
            const faiss::SearchParameters* params) const {
        return searchOnHost(index, queries, k, params);
    }
    /// Enqueues, and waits for nothing.
    void enqueue(
            const GpuIndexBitsFlat& index,
            const faiss::SearchParameters* params) const {
        index.search(
                q, onDevice.data(), k, distances.data(), labels.data(), params);
    }
    SearchOutput downloaded() const {
        return {distances.download(), labels.download()};
    }

    std::vector<float> queries;
    int64_t q;
    int k;
    DeviceBuffer<float> onDevice;
    DeviceBuffer<float> distances;
    DeviceBuffer<int64_t> labels;
    SearchOutput expected;
};

struct Shape {
    int64_t q;
    int k;
};

/// Of each thread, with the results that `expected` gives.
inline std::vector<std::vector<Job>> jobsOf(
        const std::vector<Shape>& shapes,
        const GpuIndexBitsFlat& expected) {
    std::vector<std::vector<Job>> jobs(kThreads);
    for (int t = 0; t < kThreads; ++t) {
        for (size_t i = 0; i < shapes.size(); ++i) {
            // Another order in each thread.
            const Shape shape = shapes[(i + t) % shapes.size()];
            jobs[t].emplace_back(
                    makeVectors(shape.q, expected.d, 100 * t + int(i)),
                    expected.d,
                    shape.k);
            jobs[t].back().expect(expected);
        }
    }
    return jobs;
}

/// Calls run(thread, params) in all threads at once. The first has no
/// parameters: it is on the index's resources.
inline void inThreads(
        const std::function<void(int, const faiss::SearchParameters*)>& run) {
    std::vector<std::unique_ptr<OwnResources>> resources;
    for (int t = 0; t < kThreads; ++t) {
        resources.push_back(std::make_unique<OwnResources>());
        resources.back()->getResources()->initializeForDevice(0);
    }
    std::barrier start(kThreads);
    std::vector<std::thread> threads;
    for (int t = 0; t < kThreads; ++t) {
        threads.emplace_back([&, t] {
            const SearchParametersBitsFlat params(resources[t].get());
            start.arrive_and_wait();
            try {
                run(t, t == 0 ? nullptr : &params);
            } catch (const std::exception& error) {
                ADD_FAILURE() << "thread " << t << ": " << error.what();
            }
            ASSERT_EQ(
                    cudaStreamSynchronize(resources[t]->getDefaultStream(0)),
                    cudaSuccess);
        });
    }
    for (std::thread& thread : threads) {
        thread.join();
    }
    ASSERT_EQ(cudaDeviceSynchronize(), cudaSuccess);
}

/// Runs all jobs on the index, some of them `rounds` times, in threads.
inline void searchInThreads(
        const GpuIndexBitsFlat& index,
        const std::vector<std::vector<Job>>& jobs,
        int rounds) {
    inThreads([&](int t, const faiss::SearchParameters* params) {
        for (int round = 0; round < rounds; ++round) {
            for (const Job& job : jobs[t]) {
                job.enqueue(index, params);
                ASSERT_TRUE(sameOutput(job.onHost(index, params), job.expected))
                        << "thread " << t << " q=" << job.q << " k=" << job.k;
            }
        }
    });
    for (int t = 0; t < kThreads; ++t) {
        for (const Job& job : jobs[t]) {
            ASSERT_TRUE(sameOutput(job.downloaded(), job.expected))
                    << "thread " << t << " q=" << job.q << " k=" << job.k
                    << " on the device";
        }
    }
}

} // namespace faiss_bits::test
