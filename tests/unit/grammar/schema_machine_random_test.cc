// Random schemas against the evaluator: what the machine accepts is exactly what is valid, and random walks end well.
#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

#include "grammar/schema_machine.h"
#include "schema_evaluator.h"

namespace deepinfer::grammar {
namespace {

constexpr const char* kNames[] = {"a", "b", "ab", "c"};
constexpr const char* kTexts[] = {"", "a", "ab", "b"};
constexpr const char* kNumbers[] = {"0", "1", "12"};

enum Feature : uint32_t {
  kCombine = 1,
  kNegate = 2,
  kUnevaluated = 4,
  kUnique = 8,
  kContains = 16,
  kCounts = 32,
  kDependent = 64
};

/// Makes schemas of a few nodes, each only with nodes that were made before (so none is recursive).
class SchemaMaker {
 public:
  SchemaMaker(Languages& languages, uint32_t seed, uint32_t features)
      : languages_(languages), random_(seed), features_(features) {
    schema_.nodes.resize(2);
    schema_.nodes[kFalseNode].types = 0;
  }

  Schema make(int n_nodes) {
    for (int i = 0; i < n_nodes; ++i) {
      Node node = this->node();
      schema_.nodes.push_back(std::move(node));
    }
    schema_.root = static_cast<NodeId>(schema_.nodes.size() - 1);
    return std::move(schema_);
  }

 private:
  uint32_t below(uint32_t n) { return random_() % n; }
  bool chance(uint32_t percent) { return below(100) < percent; }
  bool has(Feature f) const { return (features_ & f) != 0; }
  NodeId some() {
    if (chance(10)) return chance(70) ? kTrueNode : kFalseNode;
    const auto n = static_cast<uint32_t>(schema_.nodes.size());
    return static_cast<NodeId>(n <= 4 ? below(n) : n - 1 - below(4));
  }
  std::string name() { return kNames[below(4)]; }
  Lang names() { return chance(50) ? languages_.text("a") : starting_with_a(); }
  Lang starting_with_a() {
    const Lang parts[] = {languages_.text("a"), kAnyText};
    return languages_.concat(parts);
  }
  Lang texts() {
    const Lang two[] = {languages_.text(kTexts[below(4)]), languages_.text(kTexts[below(4)])};
    return chance(30) ? starting_with_a() : languages_.any_of(two);
  }

  Node node() {
    Node n;
    const uint32_t kind = below(10);
    if (chance(40)) n.types = static_cast<uint8_t>(1 + below(63));
    if (chance(30)) n.may_be_false = false;
    if (kind < 3) scalar(n);
    if (kind >= 2 && kind < 7) object(n);
    if (kind >= 6) array(n);
    if (has(kCombine) && chance(50)) combine(n);
    return n;
  }
  void scalar(Node& n) {
    if (chance(50)) n.text = texts();
    if (chance(30)) n.min_length = static_cast<int32_t>(below(3));
    if (chance(30)) n.max_length = static_cast<int32_t>(below(4));
    const Lang two[] = {languages_.text(kNumbers[below(3)]), languages_.text(kNumbers[below(3)])};
    if (chance(60)) n.number = languages_.any_of(two);
  }
  void object(Node& n) {
    for (uint32_t i = 0; i < 4; ++i) {
      if (chance(40)) n.properties.emplace_back(kNames[i], some());
    }
    if (chance(30)) n.pattern_properties.emplace_back(names(), some());
    if (chance(40)) n.additional_properties = chance(50) ? kFalseNode : some();
    if (chance(15)) n.property_names = some();
    while (chance(35)) n.required.push_back(name());
    if (has(kDependent) && chance(40)) n.dependent_required.push_back({name(), {name()}});
    if (has(kDependent) && chance(40)) n.dependent_schemas.emplace_back(name(), some());
    if (has(kCounts) && chance(40)) n.min_properties = below(3);
    if (has(kCounts) && chance(40)) n.max_properties = below(4);
    if (has(kUnevaluated) && chance(50)) n.unevaluated_properties = chance(60) ? kFalseNode : some();
    if (has(kUnevaluated) && chance(20)) n.has_additional_properties = true;
  }
  void array(Node& n) {
    while (chance(40)) n.prefix_items.push_back(some());
    if (chance(50)) n.items = chance(20) ? kFalseNode : some();
    if (has(kCounts) && chance(40)) n.min_items = below(3);
    if (has(kCounts) && chance(40)) n.max_items = below(4);
    if (has(kUnique)) n.unique_items = chance(60);
    if (has(kContains) && chance(60)) {
      n.contains = some();
      n.min_contains = below(3);
      if (chance(40)) n.max_contains = below(3);
      n.contains_evaluates = chance(80);
    }
    if (has(kUnevaluated) && chance(50)) n.unevaluated_items = chance(60) ? kFalseNode : some();
    if (has(kUnevaluated) && chance(20)) n.has_items = true;
  }
  void combine(Node& n) {
    const auto group = [&] {
      std::vector<NodeId> ids{some(), some()};
      if (chance(30)) ids.push_back(some());
      return ids;
    };
    if (chance(30)) n.all_of.push_back(some());
    if (chance(30)) n.any_of.push_back(group());
    if (chance(30)) n.one_of.push_back(group());
    if (has(kNegate) && chance(25)) n.none_of.push_back(some());
    if (has(kNegate) && chance(25)) n.conditionals.push_back({some(), some(), some()});
  }

  Languages& languages_;
  std::mt19937 random_;
  uint32_t features_;
  Schema schema_;
};

json::Value random_value(std::mt19937& random, int depth) {
  json::Value v;
  const uint32_t kind = random() % (depth > 0 ? 9 : 5);
  if (kind == 0) return v;
  if (kind == 1) return json::Value::of(random() % 2 == 0);
  if (kind == 2) {
    v.kind = json::Kind::kNumber;
    v.text = kNumbers[random() % 3];
    return v;
  }
  if (kind <= 4) return json::Value::of(std::string_view(kTexts[random() % 4]));
  const uint32_t n = random() % 4;
  v.kind = kind <= 6 ? json::Kind::kArray : json::Kind::kObject;
  for (uint32_t i = 0; i < n; ++i) {
    if (v.kind == json::Kind::kArray) {
      v.items.push_back(random_value(random, depth - 1));
      continue;
    }
    std::string name = random() % 5 == 0 ? "zz" : kNames[random() % 4];
    if (v.find(name) == nullptr) v.members.push_back({std::move(name), random_value(random, depth - 1)});
  }
  return v;
}

bool accepts(Machine& machine, std::string_view text) {
  State s = machine.start();
  for (const char c : text) s = machine.step(s, static_cast<uint8_t>(c));
  return machine.complete(s);
}

/// A walk over random bytes that prefers the ways that get somewhere. False: it ended where nothing may follow.
bool walk(Machine& machine, std::mt19937& random, std::string& text) {
  State s = machine.start();
  for (int i = 0; i < 1000; ++i) {
    std::vector<uint8_t> bytes;
    std::string_view likely = "\"\"\"{}[]::,,ab012tfnruls";
    for (const char c : likely) {
      if (machine.step(s, static_cast<uint8_t>(c)) != kDead) bytes.push_back(static_cast<uint8_t>(c));
    }
    if (bytes.empty() || i > 60 || random() % 20 == 0) {
      for (int byte = 0x20; byte < 0x7F; ++byte) {
        // No exponents: the JSON reader has doubles.
        if (byte == ' ' || byte == 'e' || byte == 'E') continue;
        if (machine.step(s, static_cast<uint8_t>(byte)) != kDead) bytes.push_back(static_cast<uint8_t>(byte));
      }
    }
    if (bytes.empty() && machine.step(s, 'e') != kDead) bytes.push_back('e');  // true, false
    if (bytes.empty()) return machine.complete(s);
    if (i > 60) {  // time to come to an end: nearer, or if the machine knows nothing nearer, whatever ends something
      const int64_t here = machine.distance(s);
      std::vector<uint8_t> nearer, ends;
      for (const uint8_t byte : bytes) {
        const int64_t distance = machine.distance(machine.step(s, byte));
        if (distance >= 0 && (here < 0 || distance < here)) nearer.push_back(byte);
        if (std::string_view("}],:\"").find(static_cast<char>(byte)) != std::string_view::npos) ends.push_back(byte);
      }
      if (!nearer.empty()) {
        bytes = nearer;
      } else if (!ends.empty()) {
        bytes = ends;
      }
    }
    const uint8_t byte = bytes[random() % bytes.size()];
    text += static_cast<char>(byte);
    s = machine.step(s, byte);
    if (machine.complete(s) && (i > 60 || random() % 3 == 0)) return true;
  }
  return machine.complete(s);
}

/// A random schema, as a machine and for the definition.
struct Case {
  Case(uint32_t seed, uint32_t features, PropertyOrder order)
      : languages(std::make_unique<Languages>()),
        shared(*languages),
        schema(SchemaMaker(shared, seed, features).make(3 + static_cast<int>(seed % 6))),
        oracle(shared, schema),
        machine(make_schema_machine(std::move(languages), schema, {.order = order})) {}

  std::unique_ptr<Languages> languages;
  Languages& shared;  // lives in the machine
  const Schema schema;
  SchemaEvaluator oracle;
  const std::unique_ptr<Machine> machine;
};

void check(uint32_t features, uint32_t n_schemas, uint32_t first_seed, PropertyOrder order, double stuck_max) {
  int n_valid = 0, n_walks = 0, n_stuck = 0;
  for (uint32_t seed = first_seed; seed < first_seed + n_schemas; ++seed) {
    Case made(seed, features, order);
    SchemaEvaluator& oracle = made.oracle;
    const auto& machine = made.machine;
    ASSERT_NE(machine, nullptr);
    std::mt19937 random(seed);
    bool any = false;
    for (int i = 0; i < 60; ++i) {
      const json::Value value = random_value(random, 2);
      const std::string text = json::to_string(value, json::Style::kCompact);
      const bool valid = oracle.valid(value);
      any = any || valid;
      n_valid += valid ? 1 : 0;
      const bool accepted = accepts(*machine, text);
      if (order == PropertyOrder::kAny || accepted) {
        ASSERT_EQ(accepted, valid) << "seed " << seed << ": " << text;
      }
    }
    for (int i = 0; i < 10 && machine->start() != kDead; ++i) {
      std::string text;
      ++n_walks;
      if (!walk(*machine, random, text)) {
        ++n_stuck;
        if (std::getenv("SHOW_STUCK") != nullptr) std::fprintf(stderr, "seed %u stuck: %s\n", seed, text.c_str());
        continue;
      }
      const auto value = json::parse(text);
      ASSERT_TRUE(value.ok()) << text;
      ASSERT_TRUE(oracle.valid(value.value())) << "seed " << seed << ": " << text;
    }
    ASSERT_TRUE(machine->start() != kDead || !any) << "seed " << seed;
  }
  std::printf("%u schemas: %d valid values, %d walks, %d stuck\n", n_schemas, n_valid, n_walks, n_stuck);
  EXPECT_LE(n_stuck, stuck_max * n_walks);
  EXPECT_GT(n_valid, 0);
}

/// A reachable state, a few random bytes behind the start.
State random_state(Machine& machine, std::mt19937& random, std::string& text) {
  State s = machine.start();
  for (uint32_t n = random() % 24; n > 0 && !machine.complete(s); --n) {
    std::vector<uint8_t> bytes;
    for (const char c : std::string_view("\"\"\"{}[]::,,ab012tfnruls\\")) {
      if (machine.step(s, static_cast<uint8_t>(c)) != kDead) bytes.push_back(static_cast<uint8_t>(c));
    }
    if (bytes.empty()) break;
    text += static_cast<char>(bytes[random() % bytes.size()]);
    s = machine.step(s, static_cast<uint8_t>(text.back()));
  }
  return s;
}

/// Follows the bytes that bring the end nearest. False: there is none although the text is not complete, or it took more of
/// them than were told.
bool goes_home(Machine& machine, State s, std::string& text) {
  for (int64_t left = machine.distance(s); !machine.complete(s);) {
    int64_t best = left;
    State next = kDead;
    int best_byte = 0;
    for (int byte = 0; byte < 256; ++byte) {
      const State to = machine.step(s, static_cast<uint8_t>(byte));
      const int64_t distance = machine.distance(to);
      if (to == kDead || distance < 0 || distance >= best) continue;
      best = distance;
      best_byte = byte;
      next = to;
    }
    if (next == kDead) return false;
    text += static_cast<char>(best_byte);
    s = next;
    left = best;
  }
  return true;
}

void check_home(uint32_t features, uint32_t n_schemas, uint32_t first_seed, PropertyOrder order, double lost_max) {
  int n_ways = 0, n_lost = 0;
  for (uint32_t seed = first_seed; seed < first_seed + n_schemas; ++seed) {
    Case made(seed, features, order);
    SchemaEvaluator& oracle = made.oracle;
    const auto& machine = made.machine;
    std::mt19937 random(seed);
    for (int i = 0; i < 8 && machine->start() != kDead; ++i) {
      std::string text;
      const State s = random_state(*machine, random, text);
      const std::string begin = text;
      ++n_ways;
      if (!goes_home(*machine, s, text)) {
        ++n_lost;
        if (std::getenv("SHOW_STUCK") != nullptr) {
          std::fprintf(stderr, "seed %u: %s lost at %s\n", seed, begin.c_str(), text.c_str());
        }
        continue;
      }
      ASSERT_LE(static_cast<int64_t>(text.size() - begin.size()), machine->distance(s))
          << "seed " << seed << ": " << text;
      const auto value = json::parse(text);
      ASSERT_TRUE(value.ok()) << text;
      ASSERT_TRUE(oracle.valid(value.value())) << "seed " << seed << ": " << text;
    }
  }
  std::printf("%u schemas: %d ways home, %d lost\n", n_schemas, n_ways, n_lost);
  EXPECT_GT(n_ways, 0);
  EXPECT_LE(n_lost, lost_max * n_ways);
}

/// What is asked before changes no answer: each text alone, all in one order, and in the other one.
void check_order_of_questions(uint32_t features, uint32_t n_schemas, uint32_t first_seed) {
  for (uint32_t seed = first_seed; seed < first_seed + n_schemas; ++seed) {
    const auto fresh = [&] {
      auto languages = std::make_unique<Languages>();
      Schema schema = SchemaMaker(*languages, seed, features).make(3 + static_cast<int>(seed % 6));
      return make_schema_machine(std::move(languages), std::move(schema), {});
    };
    const auto distance_after = [](Machine& machine, const std::string& text) {
      State s = machine.start();
      for (const char c : text) s = machine.step(s, static_cast<uint8_t>(c));
      return machine.distance(s);
    };
    const auto first = fresh();
    std::mt19937 random(seed);
    std::vector<std::string> texts;
    std::vector<int64_t> distances;
    for (int i = 0; i < 12 && first->start() != kDead; ++i) {
      std::string text;
      random_state(*first, random, text);
      distances.push_back(distance_after(*first, text));
      texts.push_back(std::move(text));
    }
    const auto last = fresh();
    for (size_t i = texts.size(); i-- > 0;) {
      ASSERT_EQ(distance_after(*last, texts[i]), distances[i]) << "seed " << seed << ": " << texts[i];
      const auto alone = fresh();
      if (i % 4 == 0) {
        ASSERT_EQ(distance_after(*alone, texts[i]), distances[i]) << "seed " << seed << ": " << texts[i];
      }
    }
  }
}

constexpr uint32_t kAll = kCombine | kNegate | kUnevaluated | kUnique | kContains | kCounts | kDependent;

TEST(SchemaMachineRandom, PlainSchemas) { check(0, 150, 1, PropertyOrder::kAny, 0); }
TEST(SchemaMachineRandom, Counts) { check(kCounts | kUnique, 150, 1000, PropertyOrder::kAny, 0.02); }
TEST(SchemaMachineRandom, Combinations) { check(kCombine, 200, 2000, PropertyOrder::kAny, 0.02); }
TEST(SchemaMachineRandom, Negations) { check(kCombine | kNegate, 200, 3000, PropertyOrder::kAny, 0.03); }
TEST(SchemaMachineRandom, Contains) { check(kContains | kCounts, 150, 4000, PropertyOrder::kAny, 0.03); }
TEST(SchemaMachineRandom, Dependents) { check(kDependent | kCombine, 150, 5000, PropertyOrder::kAny, 0.03); }
TEST(SchemaMachineRandom, Unevaluated) { check(kUnevaluated | kCombine, 200, 6000, PropertyOrder::kAny, 0.05); }
TEST(SchemaMachineRandom, Everything) { check(kAll, 300, 7000, PropertyOrder::kAny, 0.05); }
TEST(SchemaMachineRandom, EverythingInSchemaOrder) { check(kAll, 200, 8000, PropertyOrder::kSchema, 0.05); }

TEST(SchemaMachineRandom, WaysHome) { check_home(kCombine | kNegate | kCounts, 500, 9000, PropertyOrder::kAny, 0.002); }
TEST(SchemaMachineRandom, WaysHomeOfDependents) {
  check_home(kDependent | kCombine, 500, 10000, PropertyOrder::kAny, 0);
}
TEST(SchemaMachineRandom, WaysHomeInSchemaOrder) {
  check_home(kCombine | kNegate | kCounts | kContains, 500, 11000, PropertyOrder::kSchema, 0.003);
}
TEST(SchemaMachineRandom, WaysHomeOfEverything) { check_home(kAll, 500, 12000, PropertyOrder::kAny, 0.02); }
TEST(SchemaMachineRandom, OrderOfQuestions) { check_order_of_questions(kAll, 300, 13000); }

}  // namespace
}  // namespace deepinfer::grammar
