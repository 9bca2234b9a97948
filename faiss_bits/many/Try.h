#pragma once
#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>
namespace faiss_bits::gpu::detail {
__attribute__((visibility("default"))) bool tryFlag(const char* name);
struct Marks {
    static constexpr int kGroups = 4, kPoints = 12;
    std::chrono::steady_clock::time_point zero;
    std::array<std::array<double, kPoints>, kGroups> now{};
    std::vector<std::array<std::array<double, kPoints>, kGroups>> calls;
    bool on = false;
    void begin() {
        on = tryFlag("marks");
        if (!on) return;
        zero = std::chrono::steady_clock::now();
        for (auto& g : now) g.fill(0);
    }
    void at(int group, int point) {
        if (!on || group >= kGroups) return;
        const std::chrono::duration<double> t =
                std::chrono::steady_clock::now() - zero;
        now[group][point] = t.count() * 1e6;
    }
    void end() {
        if (!on) return;
        calls.push_back(now);
    }
    void print(const char* what, long long n, long long k) {
        if (!on || calls.empty()) return;
        if (calls.size() < 40) return;
        std::printf("marks %s n=%lld k=%lld calls=%zu (us)\n", what, n, k, calls.size());
        for (int g = 0; g < kGroups; ++g) {
            std::printf("  group %d:", g);
            for (int p = 0; p < kPoints; ++p) {
                std::vector<double> v;
                for (auto& c : calls) v.push_back(c[g][p]);
                std::nth_element(v.begin(), v.begin() + v.size() / 2, v.end());
                std::printf(" %8.1f", v[v.size() / 2]);
            }
            std::printf("\n");
        }
        std::fflush(stdout);
        calls.clear();
    }
};
inline Marks gMarks;
inline thread_local int gGroup = -1;
inline void markIn(int point) { if (gGroup >= 0) gMarks.at(gGroup, point); }
}
