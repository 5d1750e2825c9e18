from __future__ import annotations

import time
from typing import TYPE_CHECKING

import httpx
import jwt
from cli_processes import run
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ed25519

if TYPE_CHECKING:
    from pathlib import Path

    from cli_processes import Served


def status_with(secret: str, algorithm: str, served: Served) -> int:
    claims = {"project": "demo", "sub": "ada", "aud": "laurels", "exp": time.time() + 60}
    headers = {"Authorization": f"Bearer {jwt.encode(claims, secret, algorithm)}"}
    return httpx.get(f"{served.url}/v1/projects/demo/boards", headers=headers).status_code


def test_a_secret_is_made_listed_and_revoked(served: Served):
    made = run("secrets", "create", "demo", "players", "--json", data_dir=served.data_dir).document
    assert status_with(made["secret"], "HS256", served) == 200
    listed = run("secrets", "list", "--project", "demo", "--json", data_dir=served.data_dir).document
    assert made["id"] in [secret["id"] for secret in listed]
    table = run("secrets", "list", data_dir=served.data_dir).output
    assert made["id"] in table
    assert made["secret"] not in table
    revoked = run("secrets", "revoke", made["secret"], "--json", data_dir=served.data_dir).document
    assert revoked == {"revoked": made["id"]}
    assert status_with(made["secret"], "HS256", served) == 401
    assert "no secret" in run("secrets", "revoke", made["id"], data_dir=served.data_dir).complaint


def test_a_public_key_is_taken_from_a_file(served: Served, tmp_path: Path):
    key = ed25519.Ed25519PrivateKey.generate()
    encoding = serialization.Encoding.PEM
    file = tmp_path / "public.pem"
    file.write_bytes(key.public_key().public_bytes(encoding, serialization.PublicFormat.SubjectPublicKeyInfo))
    options = ("--algorithm", "EdDSA", "--public-key", str(file))
    shown = run("secrets", "create", "demo", "players", *options, data_dir=served.data_dir).output
    private = key.private_bytes(
        encoding, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    ).decode()
    assert status_with(private, "EdDSA", served) == 200
    run("secrets", "revoke", shown.splitlines()[0], data_dir=served.data_dir)
    missing = run("secrets", "create", "demo", "players", "--public-key", str(tmp_path / "none"))
    assert "public_key: " in missing.complaint


def test_a_secret_for_no_project_or_use_is_refused(served: Served):
    assert "project: 1 to 64 of" in run("secrets", "create", "*", "players").complaint
    complaint = run("secrets", "create", "demo", "fun", data_dir=served.data_dir).complaint
    assert complaint == "use: must be players or signatures, not 'fun'"
