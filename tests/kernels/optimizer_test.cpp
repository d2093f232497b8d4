#include "kernels/optimizer.hpp"

#include "kernels/flush_denormals.hpp"
#include "kernels/optimizer.inl.hpp"

#include "tests/kernels/cpu_targets.hpp"
#include "tests/numbers.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <memory>
#include <string>
#include <vector>

namespace troupe::kernels::optimizer_test {

namespace {

constexpr std::array kinds{optimizer_kind::sgd,  optimizer_kind::momentum, optimizer_kind::adagrad,
                           optimizer_kind::adam, optimizer_kind::nesterov, optimizer_kind::adamw,
                           optimizer_kind::ftrl};
constexpr float infinity = std::numeric_limits<float>::infinity();

enum class inputs { ordinary, extreme, denormal };

struct problem {
  step_options options;
  std::vector<float> weights, state, gradient;
};

problem make_problem(step_options options, inputs which, std::size_t count, std::uint64_t seed) {
  test::numbers random{seed};
  const auto value = [&] {
    switch (which) {
    case inputs::ordinary: return random.unit();
    case inputs::extreme: return random.extreme(); // Squares stay finite.
    default: return random.extreme(-149, -120);
    }
  };
  problem p{options, {}, {}, {}};
  for (std::size_t i = 0; i < count; ++i) {
    p.weights.push_back(value());
    p.gradient.push_back(value());
  }
  const bool square = options.kind == optimizer_kind::adagrad;
  for (std::size_t i = 0; i < count * state_per_weight(options.kind); ++i)
    p.state.push_back(square || i >= count ? std::fabs(value()) : value());
  return p;
}

struct outcome {
  std::vector<float> weights, state;
  bool finite;
};

outcome run(const problem& p) {
  outcome o{std::vector<float>(p.weights.size(), 77.0f), std::vector<float>(p.state.size(), 77.0f),
            false};
  o.finite = optimizer_step(o.weights, o.state, p.weights, p.state, p.gradient, p.options);
  return o;
}

bool same_bits(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size()
         && (a.empty() || std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0);
}

/// Returns every kind with every option that changes the arithmetic.
std::vector<step_options> variants() {
  std::vector<step_options> all;
  for (const optimizer_kind kind : kinds)
    for (const float clip : {0.0f, 0.25f})
      for (const float decay : {0.0f, 0.01f})
        for (const std::uint64_t step : {1, 2, 1000, 1'000'000})
          if (counts_steps(kind) || step == 1)
            all.push_back({.kind = kind,
                           .rate = 0.05f,
                           .l1 = clip > 0.0f ? 0.1f : 0.0f,
                           .beta = decay > 0.0f ? 0.3f : 1.0f,
                           .weight_decay = decay,
                           .clip_value = clip,
                           .gradient_scale = decay > 0.0f ? 0.3f : 1.0f,
                           .step = step});
  return all;
}

constexpr float least_normal = std::numeric_limits<float>::min();

float flushed(float x) { return std::fabs(x) < least_normal ? std::copysign(0.0f, x) : x; }

/// Returns `p` with zeros in place of denormals.
problem flushed(problem p) {
  for (auto* values : {&p.weights, &p.state, &p.gradient})
    std::ranges::transform(*values, values->begin(), [](float x) { return flushed(x); });
  return p;
}

/// The largest errors of a step as multiples of the header's bounds; at most 1 passes. They are
/// computed from the formulas in float64 and share no code with the kernel.
struct worst {
  double gradient = 0, first = 0, second = 0, weight = 0;
};

worst errors_of(const problem& given, const outcome& o) {
  constexpr double u = 0x1p-24, denormal = 0x1p-123, denormal_step = 0x1p-96;
  const problem p = flushed(given);
  const step_options& k = p.options;
  const double mu = k.momentum, beta2 = k.beta2, rate = k.rate, epsilon = k.epsilon;
  const std::size_t n = p.weights.size();
  worst found;
  const auto note = [](double& most, double got, double wanted, double bound) {
    most = std::max(most, std::isnan(got) ? 1e9 : std::fabs(got - wanted) / bound);
  };
  for (std::size_t i = 0; i < n; ++i) {
    const float scaled = flushed(p.gradient[i] * k.gradient_scale);
    const float limit = k.clip_value > 0.0f ? k.clip_value : infinity;
    const bool apart = k.kind == optimizer_kind::adamw || k.kind == optimizer_kind::ftrl;
    const float decay = apart ? 0.0f : k.weight_decay;
    const float rounded =
      flushed(std::clamp(scaled, -limit, limit) + flushed(decay * p.weights[i]));
    const double exact =
      std::clamp(double{p.gradient[i]} * k.gradient_scale, -double{limit}, double{limit})
      + double{decay} * p.weights[i];
    note(found.gradient, rounded, exact,
         2 * u
             * (std::fabs(double{p.gradient[i]} * k.gradient_scale)
                + std::fabs(double{decay} * p.weights[i]))
           + denormal);
    const double g = rounded, w = p.weights[i];
    // size: |step| computed from absolute values; kept: the minuend of the step.
    double step = 0, size = 0, factor = 0, kept = w, kept_factor = 1;
    if (k.kind == optimizer_kind::sgd) {
      step = rate * g, size = std::fabs(step), factor = 3;
    } else if (k.kind == optimizer_kind::momentum) {
      const double m = mu * p.state[i] + g, span = mu * std::fabs(p.state[i]) + std::fabs(g);
      note(found.first, o.state[i], m, 3 * u * span + denormal);
      step = rate * m, size = rate * span, factor = 6;
    } else if (k.kind == optimizer_kind::nesterov) {
      const double m = mu * p.state[i] + g, span = mu * std::fabs(p.state[i]) + std::fabs(g);
      note(found.first, o.state[i], m, 3 * u * span + denormal);
      step = rate * (g + mu * m), size = rate * (std::fabs(g) + mu * span), factor = 7;
    } else if (k.kind == optimizer_kind::ftrl) {
      const double z = p.state[i], q = p.state[n + i], squares = q + g * g;
      const double strength = (std::sqrt(squares) - std::sqrt(q)) / rate;
      note(found.first, o.state[i], z + g - strength * w,
           3 * u * (std::fabs(z) + std::fabs(g)) + 9 * u * std::fabs(w) * std::sqrt(squares) / rate
             + 0x1p-62 * std::fabs(w) / rate + denormal_step);
      note(found.second, o.state[n + i], squares, 2 * u * squares + denormal);
      const double new_z = o.state[i], new_q = o.state[n + i], l1 = k.l1;
      const double beyond = std::fabs(new_z) <= l1 ? 0.0 : new_z - std::copysign(l1, new_z);
      kept = 0;
      step = beyond / ((double{k.beta} + std::sqrt(new_q)) / rate + double{k.weight_decay});
      size = std::fabs(step), factor = 8;
    } else if (k.kind == optimizer_kind::adagrad) {
      const double s = p.state[i] + g * g;
      note(found.first, o.state[i], s, 2 * u * s + denormal);
      step = rate * g / (std::sqrt(s) + epsilon), size = std::fabs(step), factor = 7;
    } else {
      const double m = mu * p.state[i] + (1 - mu) * g;
      const double span = mu * std::fabs(p.state[i]) + (1 - mu) * std::fabs(g);
      const double v = beta2 * p.state[n + i] + (1 - beta2) * g * g;
      note(found.first, o.state[i], m, 3 * u * span + denormal);
      note(found.second, o.state[n + i], v, 5 * u * v + denormal);
      const double t = static_cast<double>(k.step);
      const double divisor = std::sqrt(v / (1 - std::pow(beta2, t))) + epsilon;
      step = rate * (m / (1 - std::pow(mu, t))) / divisor;
      size = rate * (span / (1 - std::pow(mu, t))) / divisor, factor = 13;
      if (k.kind == optimizer_kind::adamw)
        kept = (1 - rate * k.weight_decay) * w, kept_factor = 3;
    }
    note(found.weight, o.weights[i], kept - step,
         kept_factor * u * std::fabs(kept) + factor * u * size + denormal_step);
  }
  return found;
}

/// One element after the other, the values passed through memory that the compiler cannot look
/// into: nothing to vectorise, contract or reorder.
template <optimizer_kind Kind>
void step_one_by_one(const problem& p, outcome& o) {
  const detail::step_constants constants = detail::constants_of(p.options);
  const std::size_t n = p.weights.size();
  for (std::size_t i = 0; i < n; ++i) {
    const volatile float w = p.weights[i], g = p.gradient[i];
    const volatile float first = state_per_weight(Kind) >= 1 ? p.state[i] : 0.0f;
    const volatile float second = state_per_weight(Kind) >= 2 ? p.state[n + i] : 0.0f;
    const detail::element next = detail::stepped<Kind>({w, first, second}, g, constants);
    o.weights[i] = next.weight;
    if (state_per_weight(Kind) >= 1)
      o.state[i] = next.first;
    if (state_per_weight(Kind) >= 2)
      o.state[n + i] = next.second;
  }
}

outcome one_by_one(const problem& p) {
  outcome o{p.weights, p.state, true};
  const flush_denormals guard;
  detail::with_kind(p.options.kind, [&]<optimizer_kind Kind>() { step_one_by_one<Kind>(p, o); });
  return o;
}

std::uint64_t fnv1a(std::uint64_t hash, const std::vector<float>& values) {
  for (const float value : values) {
    const auto bits = std::bit_cast<std::uint32_t>(value);
    for (int shift = 0; shift < 32; shift += 8)
      hash = (hash ^ ((bits >> shift) & 0xff)) * 0x100000001b3;
  }
  return hash;
}

} // namespace

TEST_CASE("optimizer_step is within the stated bounds of float64") {
  worst most;
  for (const step_options& options : variants())
    for (const inputs which : {inputs::ordinary, inputs::extreme, inputs::denormal})
      for (const std::size_t count : test::awkward_sizes) {
        const problem p = make_problem(options, which, count, 42 + count);
        const outcome o = run(p);
        CHECK(o.finite);
        const worst found = errors_of(p, o);
        CAPTURE(static_cast<int>(options.kind));
        CAPTURE(static_cast<int>(which));
        CAPTURE(options.step);
        CAPTURE(count);
        CHECK(found.gradient <= 1);
        CHECK(found.first <= 1);
        CHECK(found.second <= 1);
        CHECK(found.weight <= 1);
        most = {std::max(most.gradient, found.gradient), std::max(most.first, found.first),
                std::max(most.second, found.second), std::max(most.weight, found.weight)};
      }
  // Bounds far above every error would be no test.
  CHECK(most.gradient > 0.3);
  CHECK(most.first > 0.3);
  CHECK(most.second > 0.3);
  CHECK(most.weight > 0.3);
}

TEST_CASE("optimizer_step gives the bits of the element function run one by one") {
  on_every_target([] {
    for (const step_options& options : variants())
      for (const inputs which : {inputs::ordinary, inputs::extreme, inputs::denormal})
        for (const std::size_t count : test::awkward_sizes) {
          const problem p = make_problem(options, which, count, 7 + count);
          const outcome vectorised = run(p), scalar = one_by_one(p);
          CAPTURE(static_cast<int>(options.kind));
          CAPTURE(count);
          CHECK(same_bits(vectorised.weights, scalar.weights));
          CHECK(same_bits(vectorised.state, scalar.state));
        }
  });
}

TEST_CASE("optimizer_step gives the same bits on every machine") {
  on_every_target([] {
    // The second hash covers kinds added later.
    std::array<std::uint64_t, 2> hash{0xcbf29ce484222325, 0xcbf29ce484222325};
    for (const step_options& options : variants())
      for (const inputs which : {inputs::ordinary, inputs::extreme, inputs::denormal}) {
        const outcome o = run(make_problem(options, which, 4099, 1));
        auto& of_kind = hash[options.kind > optimizer_kind::adam];
        of_kind = fnv1a(fnv1a(of_kind, o.weights), o.state);
      }
    // A change of the arithmetic changes a hash, and with it the result of every recorded run.
    CHECK(hash[0] == 0xf7367d1daff8b36e);
    CHECK(hash[1] == 0x48373ba8c1b6a32);
  });
}

TEST_CASE("optimizer_step in place, at any alignment, equals the step into other memory") {
  on_every_target([] {
    for (const step_options& options : variants())
      for (const std::size_t count : test::awkward_sizes)
        for (const std::size_t offset : {0, 1, 3}) {
          const problem p = make_problem(options, inputs::ordinary, count, 3);
          const outcome apart = run(p);
          std::vector<float> weights(offset), state(offset);
          weights.insert(weights.end(), p.weights.begin(), p.weights.end());
          state.insert(state.end(), p.state.begin(), p.state.end());
          const auto w = std::span{weights}.subspan(offset), s = std::span{state}.subspan(offset);
          CHECK(optimizer_step(w, s, w, s, p.gradient, options));
          CHECK(same_bits(apart.weights, {w.begin(), w.end()}));
          CHECK(same_bits(apart.state, {s.begin(), s.end()}));
        }
  });
}

TEST_CASE("optimizer_step of a long vector that goes past the caches gives the same bits") {
  constexpr std::size_t count = (std::size_t{4} << 20) + 592; // 16 MiB and an odd number of lines.
  constexpr std::size_t line_floats = 16;
  for (const optimizer_kind kind : kinds) {
    const step_options options{.kind = kind, .rate = 0.05f, .weight_decay = 0.01f, .step = 3};
    problem p = make_problem(options, inputs::ordinary, count, 3);
    on_every_target([&] {
      auto in_place = p;
      CHECK(optimizer_step(in_place.weights, in_place.state, in_place.weights, in_place.state,
                           p.gradient, options));
      std::vector<float> weights(count + line_floats, 77.0f);
      std::vector<float> state(p.state.size() + line_floats, 77.0f);
      const auto aligned = [](std::vector<float>& of, std::size_t floats) {
        void* at = of.data();
        std::size_t room = of.size() * sizeof(float);
        return std::span{static_cast<float*>(std::align(64, floats * sizeof(float), at, room)),
                         floats};
      };
      const auto w = aligned(weights, count), s = aligned(state, p.state.size());
      CHECK(optimizer_step(w, s, p.weights, p.state, p.gradient, options));
      CHECK(same_bits(in_place.weights, {w.begin(), w.end()}));
      CHECK(same_bits(in_place.state, {s.begin(), s.end()}));
      p.gradient[count - 1] = infinity;
      CHECK_FALSE(optimizer_step(w, s, p.weights, p.state, p.gradient, options));
      p.gradient[count - 1] = 0.5f;
    });
  }
}

TEST_CASE("optimizer_step_shared on one thread equals optimizer_step") {
  on_every_target([] {
    for (const step_options& options : variants())
      for (const inputs which : {inputs::ordinary, inputs::extreme, inputs::denormal})
        for (const std::size_t count : test::awkward_sizes) {
          problem p = make_problem(options, which, count, 5);
          const outcome plain = run(p);
          CHECK(optimizer_step_shared(p.weights, p.state, p.gradient, options));
          CHECK(same_bits(plain.weights, p.weights));
          CHECK(same_bits(plain.state, p.state));
        }
  });
}

TEST_CASE("optimizer_step_rows gives the bits of optimizer_step on each row, whatever the width") {
  on_every_target([] {
    constexpr std::size_t count = 131;
    constexpr std::array<std::uint64_t, 4> ages{1, 1, 7, 100'000};
    for (const step_options& options : variants())
      for (const std::size_t width : {1u, 2u, 3u, 4u, 8u, 16u, 17u, 32u, 64u}) {
        const std::size_t states = state_per_weight(options.kind) * width;
        std::vector<float> gradient;
        std::vector<std::vector<float>> rows, expected;
        std::vector<std::uint64_t> steps;
        for (std::size_t i = 0; i < count; ++i) {
          problem p = make_problem(options, inputs::extreme, width, 7 * i + width);
          if (counts_steps(options.kind)) {
            steps.push_back(ages[i % ages.size()]);
            p.options.step = steps.back();
          }
          const outcome o = run(p);
          gradient.insert(gradient.end(), p.gradient.begin(), p.gradient.end());
          rows.push_back(p.weights);
          rows.back().insert(rows.back().end(), p.state.begin(), p.state.end());
          expected.push_back(o.weights);
          expected.back().insert(expected.back().end(), o.state.begin(), o.state.end());
          REQUIRE(rows.back().size() == width + states);
        }
        std::vector<float*> pointers;
        for (auto& row : rows)
          pointers.push_back(row.data());
        optimizer_step_rows(pointers, width, gradient, steps, options);
        for (std::size_t i = 0; i < count; ++i)
          REQUIRE(same_bits(rows[i], expected[i]));
      }
  });
}

TEST_CASE("optimizer_step takes denormal inputs for zeros and gives no denormal result") {
  const auto is_denormal = [](float x) { return x != 0.0f && std::fabs(x) < least_normal; };
  for (const step_options& options : variants())
    for (const inputs which : {inputs::extreme, inputs::denormal}) {
      const problem p = make_problem(options, which, 4099, 13);
      REQUIRE(std::ranges::any_of(p.gradient, is_denormal));
      const outcome o = run(p), zeros = run(flushed(p));
      CHECK(same_bits(o.weights, zeros.weights));
      CHECK(same_bits(o.state, zeros.state));
      CHECK(std::ranges::none_of(o.weights, is_denormal));
      CHECK(std::ranges::none_of(o.state, is_denormal));
    }
}

TEST_CASE("optimizer_step leaves the thread's arithmetic on denormals as it was") {
  const volatile float tiny = 0x1p-140f;
  problem p = make_problem({.kind = optimizer_kind::adam}, inputs::ordinary, 33, 1);
  (void)run(p);
  CHECK(tiny * 2.0f == 0x1p-139f);
  (void)optimizer_step_shared(p.weights, p.state, p.gradient, p.options);
  CHECK(tiny * 2.0f == 0x1p-139f);
  const flush_denormals guard;
  (void)run(p);
  const volatile float product = tiny * 2.0f;
  CHECK(std::bit_cast<std::uint32_t>(float{product}) == 0);
}

TEST_CASE("optimizer_step notices NaN and infinity at every position") {
  on_every_target([] {
    const float quiet = std::numeric_limits<float>::quiet_NaN();
    const float payload = std::bit_cast<float>(0xff800001u);
    for (const optimizer_kind kind : kinds)
      for (const float clip : {0.0f, 1.0f})
        for (const std::size_t count : {1, 3, 16, 33, 67})
          for (std::size_t position = 0; position < count; ++position)
            for (const float bad : {quiet, payload, infinity, -infinity}) {
              problem p =
                make_problem({.kind = kind, .clip_value = clip}, inputs::ordinary, count, 11);
              p.gradient[position] = bad;
              CHECK_FALSE(run(p).finite);
              CHECK_FALSE(optimizer_step_shared(p.weights, p.state, p.gradient, p.options));
            }
  });
}

TEST_CASE("optimizer_step takes the largest floats for finite") {
  const float largest = std::numeric_limits<float>::max();
  for (const optimizer_kind kind : kinds) {
    problem p = make_problem({.kind = kind, .clip_value = 1.0f}, inputs::ordinary, 37, 11);
    std::ranges::fill(p.gradient, largest);
    p.gradient[1] = -largest;
    CHECK(run(p).finite);
  }
}

TEST_CASE("optimizer_step leaves a weight alone where the gradient and the state are zero") {
  for (const optimizer_kind kind : kinds) {
    if (kind == optimizer_kind::ftrl)
      continue;
    const step_options options{.kind = kind};
    problem p{options, std::vector<float>(19, 0.75f),
              std::vector<float>(19 * state_per_weight(kind)), std::vector<float>(19)};
    const outcome o = run(p);
    CHECK(o.finite);
    CHECK(same_bits(o.weights, p.weights));
    CHECK(same_bits(o.state, p.state));
  }
}

TEST_CASE("optimizer_step of ftrl makes weights zero up to l1, and only those") {
  const step_options options{.kind = optimizer_kind::ftrl, .rate = 0.5f, .l1 = 1.0f};
  const outcome o = run({options,
                         {0.0f, 0.0f, 0.0f, 0.0f},
                         {0.5f, 1.0f, -0.75f, 0.0f, 0.0f, 0.0f, 0.0f, 0.0f},
                         {0.5f, 0.25f, -0.5f, 0.0f}});
  CHECK(o.weights[0] == 0.0f);
  CHECK(o.weights[1] == doctest::Approx(-0.25 / ((1 + 0.25) / 0.5)));
  CHECK(o.weights[2] == doctest::Approx(0.25 / ((1 + 0.5) / 0.5)));
  CHECK(o.weights[3] == 0.0f);
}

TEST_CASE("optimizer_step of adamw decays the weight and not the gradient") {
  const step_options options{.kind = optimizer_kind::adamw, .rate = 0.1f, .weight_decay = 0.5f};
  const outcome o = run({options, {2.0f}, {0.0f, 0.0f}, {0.0f}});
  CHECK(o.weights[0] == doctest::Approx(1.9));
  CHECK(o.state[0] == 0.0f);
  CHECK(o.state[1] == 0.0f);
}

TEST_CASE("optimizer_step keeps the weight where a square overflows") {
  const step_options options{.kind = optimizer_kind::adagrad};
  const outcome o = run({options, {2.0f}, {0.0f}, {1e30f}});
  CHECK(o.finite);
  CHECK(o.weights[0] == 2.0f);
  CHECK(o.state[0] == infinity);
}

} // namespace troupe::kernels::optimizer_test
