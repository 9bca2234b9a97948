#pragma once

#include "kernels/canonical/Power.h"
#include "kernels/common/Types.h"

/// The canonical distance of a query and a stored vector: what a search
/// returns and orders by, whatever arithmetic found the candidates.
///
/// Both are widened to float64 (a stored float16 or bfloat16 vector too; the
/// query is never rounded). Component i adds its terms to slot i mod 8 in the
/// order of i, every operation rounded and none fused. A metric has up to three
/// sums, each of eight slots, which become
///
///     ((s0 + s4) + (s2 + s6)) + ((s1 + s5) + (s3 + s7))
///
/// and the distance that finish() makes of the sums is rounded once to float32.
/// So every GPU and every CPU has the same bits, for every batch, page, tile
/// and number of threads. docs/exact.md says what that is worth.
namespace faiss_bits::canonical {

constexpr int kSlots = 8;

/// Terms of a metric: kSums sums; add() takes the components x of the vector
/// and q of the query to one slot of each; join() makes one of two slots;
/// finish() makes the distance of the joined sums.
template <Metric>
struct Terms;

struct AddedTerms {
    static constexpr int kSums = 1;
    BITS_HOST_DEVICE static double join(double a, double b) {
        return canonical::add(a, b);
    }
    BITS_HOST_DEVICE static double finish(const double* sums) {
        return sums[0];
    }
};

template <>
struct Terms<Metric::L2> : AddedTerms {
    BITS_HOST_DEVICE static void add(
            double* s,
            double x,
            double q,
            const Power&) {
        const double t = sub(x, q);
        s[0] = canonical::add(s[0], mul(t, t));
    }
};

template <>
struct Terms<Metric::InnerProduct> : AddedTerms {
    BITS_HOST_DEVICE static void add(
            double* s,
            double x,
            double q,
            const Power&) {
        s[0] = addProduct(s[0], x, q);
    }
};

template <>
struct Terms<Metric::L1> : AddedTerms {
    BITS_HOST_DEVICE static void add(
            double* s,
            double x,
            double q,
            const Power&) {
        s[0] = canonical::add(s[0], abs(sub(x, q)));
    }
};

template <>
struct Terms<Metric::Linf> : AddedTerms {
    BITS_HOST_DEVICE static void add(
            double* s,
            double x,
            double q,
            const Power&) {
        s[0] = larger(s[0], abs(sub(x, q)));
    }
    BITS_HOST_DEVICE static double join(double a, double b) {
        return larger(a, b);
    }
};

template <>
struct Terms<Metric::Lp> : AddedTerms {
    BITS_HOST_DEVICE static void add(
            double* s,
            double x,
            double q,
            const Power& power) {
        s[0] = canonical::add(s[0], power(abs(sub(x, q))));
    }
};

/// (sum x q) / sqrt(sum x x * sum q q); 0 where a vector is all zeros.
template <>
struct Terms<Metric::Cosine> : AddedTerms {
    static constexpr int kSums = 3;
    BITS_HOST_DEVICE static void add(
            double* s,
            double x,
            double q,
            const Power&) {
        s[0] = addProduct(s[0], x, q);
        s[1] = addProduct(s[1], x, x);
        s[2] = addProduct(s[2], q, q);
    }
    BITS_HOST_DEVICE static double finish(const double* s) {
        const double squares = mul(s[1], s[2]);
        // Not 0 / 0; but NaN stays NaN.
        return squares == 0 ? 0.0 : div(s[0], sqrt(squares));
    }
};

/// sum |x - q| / (|x| + |q|), where 0 / 0 counts 0.
template <>
struct Terms<Metric::Canberra> : AddedTerms {
    BITS_HOST_DEVICE static void add(
            double* s,
            double x,
            double q,
            const Power&) {
        const double size = canonical::add(abs(x), abs(q));
        const double term = size == 0 ? 0.0 : div(abs(sub(x, q)), size);
        s[0] = canonical::add(s[0], term);
    }
};

/// (sum |x - q|) / (sum |x + q|), 0 for 0 / 0.
template <>
struct Terms<Metric::BrayCurtis> : AddedTerms {
    static constexpr int kSums = 2;
    BITS_HOST_DEVICE static void add(
            double* s,
            double x,
            double q,
            const Power&) {
        s[0] = canonical::add(s[0], abs(sub(x, q)));
        s[1] = canonical::add(s[1], abs(canonical::add(x, q)));
    }
    BITS_HOST_DEVICE static double finish(const double* s) {
        return s[0] == 0 && s[1] == 0 ? 0.0 : div(s[0], s[1]);
    }
};

/// (sum (x log(x / m) + q log(q / m))) / 2 with m = (x + q) / 2, where
/// 0 log 0 counts 0.
template <>
struct Terms<Metric::JensenShannon> : AddedTerms {
    BITS_HOST_DEVICE static void add(
            double* s,
            double x,
            double q,
            const Power&) {
        const double m = mul(0.5, canonical::add(x, q));
        s[0] = canonical::add(s[0], canonical::add(term(x, m), term(q, m)));
    }
    BITS_HOST_DEVICE static double finish(const double* s) {
        return mul(0.5, s[0]);
    }

   private:
    BITS_HOST_DEVICE static double term(double x, double m) {
        return x == 0 ? 0.0 : mul(x, log(div(x, m)));
    }
};

/// (sum min(x, q)) / (sum max(x, q)), 0 for 0 / 0. Largest first, as FAISS.
template <>
struct Terms<Metric::Jaccard> : AddedTerms {
    static constexpr int kSums = 2;
    BITS_HOST_DEVICE static void add(
            double* s,
            double x,
            double q,
            const Power&) {
        s[0] = canonical::add(s[0], smaller(x, q));
        s[1] = canonical::add(s[1], larger(x, q));
    }
    BITS_HOST_DEVICE static double finish(const double* s) {
        return s[0] == 0 && s[1] == 0 ? 0.0 : div(s[0], s[1]);
    }
};

/// The distance of sums[kSums][kSlots].
template <class MetricTerms>
BITS_HOST_DEVICE double joinSlots(
        const double (&sums)[MetricTerms::kSums][kSlots]) {
    double joined[MetricTerms::kSums];
    for (int i = 0; i < MetricTerms::kSums; ++i) {
        const double(&s)[kSlots] = sums[i];
        const auto join = [](double a, double b) {
            return MetricTerms::join(a, b);
        };
        joined[i] =
                join(join(join(s[0], s[4]), join(s[2], s[6])),
                     join(join(s[1], s[5]), join(s[3], s[7])));
    }
    return MetricTerms::finish(joined);
}

/// The distance of a vector x [d] and a query q [d], one component after the
/// other: the definition in code. Not yet rounded to float32.
template <Metric kMetric, class T>
BITS_HOST_DEVICE double distance(
        const T* x,
        const T* q,
        int d,
        const Power& power = Power()) {
    using MetricTerms = Terms<kMetric>;
    double sums[MetricTerms::kSums][kSlots] = {};
    for (int i = 0; i < d; ++i) {
        double slot[MetricTerms::kSums];
        for (int j = 0; j < MetricTerms::kSums; ++j) {
            slot[j] = sums[j][i % kSlots];
        }
        MetricTerms::add(slot, double(x[i]), double(q[i]), power);
        for (int j = 0; j < MetricTerms::kSums; ++j) {
            sums[j][i % kSlots] = slot[j];
        }
    }
    return joinSlots<MetricTerms>(sums);
}

} // namespace faiss_bits::canonical
