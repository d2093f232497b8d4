#include "actors/training/head_type.hpp"

#include "doctest/doctest.h"

#include <array>
#include <cstdint>
#include <string>

// The namespace has a name, as a name without one differs among compilers.
namespace head_type_test {

enum class suit : std::uint8_t { hearts, spades };
struct experience {
  std::uint32_t episode;
  float reward;
};
struct renamed {
  std::uint32_t step;
  float reward;
};
struct hand {
  char mark;
  bool is_open;
  double bet;
  suit trump;
  experience seen;
  float odds[3];
  std::int16_t grid[2][2];
  experience pair[2];
  std::array<float, 4> rest;
};
struct derived : experience {
  float more;
};
struct packed {
  unsigned low : 3;
  unsigned high : 5;
};
struct of_16 {
  int a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p;
};
struct of_17 {
  int a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q;
};
struct of_64_values {
  float seen[60];
  int a, b, c, d;
};
struct of_65_values {
  float seen[60];
  int a, b, c, d, e;
};
struct empty {};
class closed {
public:
  int get() const { return value_; }

private:
  int value_ = 0;
};
struct with_defaults {
  int count = 3;
  float rate = 2;
};
union either {
  int whole;
  float real;
};
struct deep {
  of_16 a, b, c, d, e, f, g, h;
};

TEST_CASE("a_type_of_heads_is_told_by_its_members") {
  using troupe::head_type_of;
  const std::string at = "head_type_test::";
  CHECK(head_type_of<experience>() == at + "experience{u32,f32} 8/4");
  CHECK(head_type_of<renamed>() != head_type_of<experience>());
  CHECK(head_type_of<hand>()
        == at + "hand{i8,bool,f64," + at + "suit:u8," + at + "experience{u32,f32},f32[3],i16[2][2],"
             + at + "experience{u32,f32}[2],std::array<float, 4>} 80/8");
  CHECK(head_type_of<packed>() == at + "packed{u32,u32} 4/4");
  CHECK(head_type_of<with_defaults>() == at + "with_defaults{i32,f32} 8/4");
  CHECK(head_type_of<empty>() == at + "empty 1/1");
  CHECK(head_type_of<float>() == "f32 4/4");
}

TEST_CASE("members_that_no_binding_can_name_are_left_out") {
  using troupe::head_type_of;
  const std::string at = "head_type_test::";
  CHECK(head_type_of<derived>() == at + "derived 12/4");
  CHECK(head_type_of<closed>() == at + "closed 4/4");
  CHECK(head_type_of<either>() == at + "either 4/4");
  CHECK(head_type_of<std::array<float, 3>>() == "std::array<float, 3> 12/4");
  CHECK(head_type_of<of_16>()
        == at + "of_16{i32,i32,i32,i32,i32,i32,i32,i32,i32,i32,i32,i32,i32,i32,i32,i32} 64/4");
  CHECK(head_type_of<of_17>() == at + "of_17 68/4");
  CHECK(head_type_of<of_64_values>() == at + "of_64_values{f32[60],i32,i32,i32,i32} 256/4");
  CHECK(head_type_of<of_65_values>() == at + "of_65_values 260/4");
}

TEST_CASE("a_long_text_is_its_beginning_and_a_checksum") {
  const auto text = troupe::head_type_of<deep>();
  CHECK(text.size() == 300 + 3 + 8 + std::string{" 512/4"}.size());
  CHECK(text.starts_with("head_type_test::deep{head_type_test::of_16{i32,"));
  CHECK(text.ends_with(" 512/4"));
  const std::string one(500, 'a');
  auto other = one;
  other.back() = 'b';
  CHECK(troupe::detail::shortened(one) != troupe::detail::shortened(other));
  CHECK(troupe::detail::shortened(one.substr(0, 400)) == one.substr(0, 400));
}

} // namespace head_type_test
