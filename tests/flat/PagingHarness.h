#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <memory>
#include <vector>

#include <cuda_runtime.h>
#include <faiss/impl/AuxIndexStructures.h>

#include "tests/flat/IndexHarness.h"

/// What the tests of calls with host arrays share.
namespace faiss_bits::test {

enum class HostKind { Pageable, Pinned, Registered, Managed };
constexpr HostKind kHostKinds[] = {
        HostKind::Pageable,
        HostKind::Pinned,
        HostKind::Registered,
        HostKind::Managed};

/// An array on the host.
template <class T>
class HostArray {
   public:
    HostArray(HostKind kind, size_t count) : kind_(kind), count_(count) {
        void* memory = nullptr;
        if (kind == HostKind::Pinned) {
            BITS_CUDA_CHECK(cudaMallocHost(&memory, count * sizeof(T)));
        } else if (kind == HostKind::Managed) {
            BITS_CUDA_CHECK(cudaMallocManaged(&memory, count * sizeof(T)));
        } else {
            values_.resize(count);
            memory = values_.data();
        }
        if (kind == HostKind::Registered) {
            BITS_CUDA_CHECK(cudaHostRegister(memory, count * sizeof(T), 0));
        }
        data_ = static_cast<T*>(memory);
    }

    HostArray(HostKind kind, const std::vector<T>& values)
            : HostArray(kind, values.size()) {
        std::copy(values.begin(), values.end(), data_);
    }

    HostArray(const HostArray&) = delete;
    HostArray& operator=(const HostArray&) = delete;

    ~HostArray() {
        // Whatever still copies is done first.
        (void)cudaDeviceSynchronize();
        if (kind_ == HostKind::Pinned) {
            (void)cudaFreeHost(data_);
        } else if (kind_ == HostKind::Managed) {
            (void)cudaFree(data_);
        } else if (kind_ == HostKind::Registered) {
            (void)cudaHostUnregister(data_);
        }
    }

    T* data() const {
        return data_;
    }

    std::vector<T> values() const {
        return {data_, data_ + count_};
    }

   private:
    HostKind kind_;
    size_t count_;
    std::vector<T> values_;
    T* data_ = nullptr;
};

/// A search with its arrays in memory of a kind.
struct HostSearch {
    HostSearch(HostKind kind, const std::vector<float>& queries, int64_t places)
            : x(kind, queries), distances(kind, places), labels(kind, places) {
        std::fill(distances.data(), distances.data() + places, -123.f);
        std::fill(labels.data(), labels.data() + places, -123);
    }

    SearchOutput output() const {
        return {distances.values(), labels.values()};
    }

    HostArray<float> x;
    HostArray<float> distances;
    HostArray<int64_t> labels;
};

/// Resources with pinned and temporary memory of a test's choice.
struct SizedResources : faiss::gpu::StandardGpuResources {
    SizedResources(size_t pinnedBytes, size_t temporaryBytes) {
        setPinnedMemory(pinnedBytes);
        setTempMemory(temporaryBytes);
    }
};

/// FAISS's interrupt callback, as long as it lives: wants an interrupt when it
/// is asked for the `times`th time, or when `seconds` have gone by.
class InterruptScope {
   public:
    using Clock = std::chrono::steady_clock;

    explicit InterruptScope(int times, double seconds = 1e9)
            : before_(std::move(faiss::InterruptCallback::instance)) {
        auto callback = std::make_unique<Callback>();
        callback->times = times;
        callback->end = seconds;
        callback_ = callback.get();
        faiss::InterruptCallback::instance = std::move(callback);
    }

    ~InterruptScope() {
        faiss::InterruptCallback::instance = std::move(before_);
    }

    int asked() const {
        return callback_->asked;
    }

    /// Since the callback wanted an interrupt.
    double secondsSince() const {
        return callback_->elapsed() - callback_->wantedAt;
    }

   private:
    struct Callback : faiss::InterruptCallback {
        bool want_interrupt() override {
            ++asked;
            if (asked < times && elapsed() < end) {
                return false;
            }
            wantedAt = std::min(wantedAt, elapsed());
            return true;
        }
        double elapsed() const {
            return std::chrono::duration<double>(Clock::now() - start).count();
        }
        Clock::time_point start = Clock::now();
        std::atomic<int> asked{0};
        int times = 0;
        double end = 0;
        double wantedAt = 1e9;
    };

    std::unique_ptr<faiss::InterruptCallback> before_;
    Callback* callback_ = nullptr;
};

/// True if the call ends with FAISS's exception of an interrupt.
template <class Call>
::testing::AssertionResult isInterrupted(Call&& call) {
    try {
        call();
    } catch (const faiss::FaissException& error) {
        if (std::string(error.what()).find("computation interrupted") ==
            std::string::npos) {
            return ::testing::AssertionFailure() << error.what();
        }
        return ::testing::AssertionSuccess();
    }
    return ::testing::AssertionFailure() << "the call went on to its end";
}

} // namespace faiss_bits::test
