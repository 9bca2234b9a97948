#include "benchs/ivf/IvfData.h"

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <thread>

namespace faiss_bits::bench {

namespace {

constexpr int kCenters = 2000;
constexpr uint64_t kOfCenters = 77;
constexpr int64_t kCopies = 16; // of a duplicate
constexpr float kFar = 10;

/// SplitMix64: any seed will do, so that every vector has its own.
class Numbers {
   public:
    Numbers(uint64_t seed, uint64_t row)
            : state_(seed * 0x9e3779b97f4a7c15ull +
                     row * 0xd1342543de82ef95ull) {
        next();
    }

    uint64_t next() {
        uint64_t z = state_ += 0x9e3779b97f4a7c15ull;
        z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
        z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
        return z ^ (z >> 31);
    }

    /// In [0, 1).
    float uniform() {
        return float(next() >> 40) * 0x1p-24f;
    }

   private:
    uint64_t state_;
};

void uniformVector(Numbers numbers, int d, float* x) {
    std::generate_n(x, d, [&] { return numbers.uniform(); });
}

void clusteredVector(Numbers numbers, int d, float* x) {
    const double at = double(numbers.next() >> 11) * 0x1p-53;
    Numbers center(kOfCenters, uint64_t(at * at * kCenters));
    std::generate_n(x, d, [&] {
        return center.uniform() + 0.2f * (numbers.uniform() - 0.5f);
    });
}

void walkVector(Numbers numbers, int d, float* x) {
    float at = 4 * numbers.uniform();
    std::generate_n(
            x, d, [&] { return at += 0.5f * (numbers.uniform() - 0.5f); });
}

} // namespace

void forAll(int64_t count, const std::function<void(int64_t)>& make) {
    std::atomic<int64_t> next{0};
    const auto work = [&] {
        constexpr int64_t kStep = 64;
        for (int64_t i; (i = next.fetch_add(kStep)) < count;) {
            for (int64_t end = std::min(i + kStep, count); i < end; ++i) {
                make(i);
            }
        }
    };
    std::vector<std::thread> others(
            std::max(1u, std::thread::hardware_concurrency()) - 1);
    for (std::thread& other : others) {
        other = std::thread(work);
    }
    work();
    for (std::thread& other : others) {
        other.join();
    }
}

const std::vector<std::string>& ivfDataNames() {
    static const std::vector<std::string> names = {
            "uniform", "clustered", "walk", "duplicates", "far"};
    return names;
}

std::vector<float> makeIvfVectors(
        const std::string& data,
        int64_t count,
        int d,
        uint64_t seed) {
    const auto& names = ivfDataNames();
    if (std::find(names.begin(), names.end(), data) == names.end()) {
        std::fprintf(stderr, "--data: '%s' is none\n", data.c_str());
        std::exit(2);
    }
    std::vector<float> vectors(size_t(count) * d);
    forAll(count, [&](int64_t i) {
        float* x = vectors.data() + i * d;
        if (data == "clustered") {
            clusteredVector({seed, uint64_t(i)}, d, x);
        } else if (data == "walk") {
            walkVector({seed, uint64_t(i)}, d, x);
        } else if (data == "duplicates") {
            const int64_t some = std::max<int64_t>(count / kCopies, 1);
            uniformVector({seed, uint64_t(i % some)}, d, x);
        } else {
            uniformVector({seed, uint64_t(i)}, d, x);
            if (data == "far") {
                std::for_each(x, x + d, [](float& value) { value += kFar; });
            }
        }
    });
    return vectors;
}

FileVectors readVectors(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    const std::vector<char> bytes{std::istreambuf_iterator<char>(file), {}};
    const bool isBytes = path.ends_with(".bvecs");
    const size_t size = isBytes ? 1 : sizeof(float);
    FileVectors result;
    for (size_t at = 0; at < bytes.size();) {
        int32_t d = 0;
        const bool hasHead = bytes.size() - at >= sizeof d;
        if (hasHead) {
            std::memcpy(&d, bytes.data() + at, sizeof d);
            at += sizeof d;
        }
        if (!hasHead || d < 1 || (result.d && d != result.d) ||
            bytes.size() - at < size * d) {
            throw std::runtime_error(path + " has no vectors of one length");
        }
        result.d = d;
        const size_t first = result.values.size();
        result.values.resize(first + d);
        if (isBytes) {
            const auto* from =
                    reinterpret_cast<const uint8_t*>(bytes.data() + at);
            std::copy_n(from, d, result.values.data() + first);
        } else {
            std::memcpy(
                    result.values.data() + first, bytes.data() + at, size * d);
        }
        at += size * d;
    }
    if (!result.d) {
        throw std::runtime_error("cannot read " + path);
    }
    return result;
}

} // namespace faiss_bits::bench
