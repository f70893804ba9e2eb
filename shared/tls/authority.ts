/** The platform's own authority: made once, signs the certificates of the orchestrator, of edges and of nodes. No I/O. */

import "reflect-metadata";
import {
  AuthorityKeyIdentifierExtension,
  BasicConstraintsExtension,
  ExtendedKeyUsage,
  ExtendedKeyUsageExtension,
  KeyUsageFlags,
  KeyUsagesExtension,
  SubjectAlternativeNameExtension,
  SubjectKeyIdentifierExtension,
  X509CertificateGenerator,
} from "@peculiar/x509";
import { BACKDATED_MS, type Credentials } from "./credentials.ts";
import { digestOf } from "./digest.ts";
import { readRequest } from "./request.ts";
import { type CertificateWithKey, newKeys, type Period, pem, privatePem, readSigner, signed } from "./x509.ts";

const HOUR_MS = 3_600_000;
/** `svc rotate ca` replaces it; nobody has to. */
const AUTHORITY_MS = 20 * 365 * 24 * HOUR_MS;
const CERTIFICATE_MS = 72 * HOUR_MS;

/** @param at unix milliseconds */
export async function makePlatformAuthority(at: number): Promise<CertificateWithKey> {
  const keys = await newKeys();
  const certificate = await X509CertificateGenerator.createSelfSigned({
    ...signed({ from: at - BACKDATED_MS, until: at + AUTHORITY_MS }),
    name: [{ CN: ["svc platform"] }],
    keys,
    extensions: [
      new BasicConstraintsExtension(true, 0, true),
      new KeyUsagesExtension(KeyUsageFlags.keyCertSign, true),
      await SubjectKeyIdentifierExtension.create(keys.publicKey),
    ],
  });
  return { certificate: pem(certificate), key: await privatePem(keys.privateKey) };
}

/** Signs what asks for a name: the certificate names only what the caller says, whatever the request has. */
export interface Authority {
  /** PEM. */
  readonly certificate: string;
  /** SHA-256 of the public key, in hexadecimal digits: what join tokens name the platform by. */
  readonly digest: string;
  /**
   * The certificate for a peer that has the key of the request, PEM.
   * @throws RangeError when the text is no request that its own key signed
   */
  sign(request: string, name: string, at: number): Promise<string>;
  /** A key and its certificate, for a program that runs beside the authority. */
  issue(name: string, at: number): Promise<Credentials>;
}

export async function openAuthority(own: CertificateWithKey): Promise<Authority> {
  const signer = await readSigner(own);

  const certify = async (publicKey: CertifiedKey, name: string, at: number) => {
    const certificate = await X509CertificateGenerator.create({
      ...signed(periodAt(at)),
      subject: [],
      issuer: signer.certificate.subjectName,
      publicKey,
      signingKey: signer.key,
      extensions: [
        new BasicConstraintsExtension(false, undefined, true),
        new KeyUsagesExtension(KeyUsageFlags.digitalSignature, true),
        new ExtendedKeyUsageExtension([ExtendedKeyUsage.serverAuth, ExtendedKeyUsage.clientAuth]),
        // Without a subject the name here is the only one, and then it has to be critical (RFC 5280 §4.2.1.6).
        new SubjectAlternativeNameExtension([{ type: "url", value: name }], true),
        await SubjectKeyIdentifierExtension.create(publicKey),
        await AuthorityKeyIdentifierExtension.create(signer.certificate),
      ],
    });
    return pem(certificate);
  };

  return {
    certificate: own.certificate,
    digest: digestOf(own.certificate),
    sign: async (request, name, at) => certify(await readRequest(request), name, at),
    async issue(name, at) {
      const keys = await newKeys();
      return {
        authority: own.certificate,
        certificate: await certify(keys.publicKey, name, at),
        key: await privatePem(keys.privateKey),
      };
    },
  };
}

type CertifiedKey = Awaited<ReturnType<typeof readRequest>> | Awaited<ReturnType<typeof newKeys>>["publicKey"];

function periodAt(at: number): Period {
  return { from: at - BACKDATED_MS, until: at + CERTIFICATE_MS };
}
